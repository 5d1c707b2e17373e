"""What flags say of one GPU: `<gpu>:<value>`."""

from __future__ import annotations

from tritonpy.cli.flag import Parse, integer


def device_setting(parse: Parse) -> Parse:
    """Return a parser that gives no name, the GPU and its value, which `parse` reads. It raises ValueError in Triton's words."""

    def read(text: str) -> tuple[str, str, object]:
        device, colon, value = text.partition(":")
        if not colon:
            raise ValueError(
                "Cannot parse pair option due to incorrect number of inputs."
                f"--<pair option> argument requires format <first>:<second>. Found: {text}"
            )
        return "", str(integer(device)), parse(value)

    return read
