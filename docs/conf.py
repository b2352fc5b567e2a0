"""How Sphinx builds the documentation: ``make docs``; nothing is fetched, warnings are errors."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import generated  # noqa: E402

import manifoldknn  # noqa: E402

warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

project = "manifoldknn"
author = "The manifoldknn developers"
copyright = author
release = version = manifoldknn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "accessible",
    "mathml",
    "quoted",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_templates",
    "reproduction", "**/*.ipynb", "**/GALLERY_HEADER.rst", "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]  # fmt: skip
nitpicky = False
default_role = "literal"
suppress_warnings = ["config.cache"]
smartquotes = False
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "manifoldknn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["reproduction/report.html"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "header_links_before_dropdown": 7,
}
html_sidebars = {
    "index": [],
    "start": [],
    "faq": [],
    "glossary": [],
    "changelog": [],
    "comparison": [],
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery", "../examples/tutorials"],
    "gallery_dirs": ["gallery", "tutorials"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_memory": False,
    "download_all_examples": False,
    "default_thumb_file": str(HERE / "images" / "arch_and_s.png"),
    "reset_modules": ("matplotlib",),
    "only_warn_on_example_error": False,
    "matplotlib_animations": False,
    "copyfile_regex": r".*\.csv$",
}

generated.write_pages(HERE)
