"""Pages from templates: every value is escaped, so that nothing in a table becomes markup.

Classes have the same colours and shapes on all pages.
"""

from typing import Any

# Each is at least three times as light as a dark page and as dark as a white one.
COLORS = (
    "#2b7bd6", "#d1600a", "#1a9850", "#c4488f", "#8a63d2", "#0e8fa3", "#d8434e", "#85851a",
    "#a0703c", "#75808c",
)  # fmt: skip
# Around 0: disc, square, triangle, diamond, triangle on its tip, cross, bar, standing bar.
SHAPES = (
    "M4.5 0A4.5 4.5 0 1 1 -4.5 0A4.5 4.5 0 1 1 4.5 0Z", "M-4 -4H4V4H-4Z", "M0 -5L5 4H-5Z",
    "M0 -5.6L5.6 0L0 5.6L-5.6 0Z", "M0 5L5 -4H-5Z",
    "M-1.7 -5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z", "M-5.5 -2.3H5.5V2.3H-5.5Z",
    "M-2.3 -5.5H2.3V5.5H-2.3Z", "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z",
)  # fmt: skip


def rendered(package: str, template: str, **values: Any) -> str:
    """Return one of a package's ``templates``, filled in.

    In HTML values become text, whatever they hold; ``|tojson`` makes data that a script element can
    hold. A name that the template wants and nobody gave is an error.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader(package),
        autoescape=lambda name: not str(name).endswith(".txt"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return pages.get_template(template).render(values)
