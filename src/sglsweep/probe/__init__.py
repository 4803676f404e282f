"""Questions put to hosts and servers, and how their answers are judged."""
