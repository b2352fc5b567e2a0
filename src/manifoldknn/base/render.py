"""Pages from templates: every value is escaped, so that nothing in a table becomes markup."""

from typing import Any


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
