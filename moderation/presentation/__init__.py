"""Charts, strips and wording: values for templates, without access to stores."""
