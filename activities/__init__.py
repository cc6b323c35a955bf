"""Ready activities (http, sql, shell, mail, files), a sample shop and the demo. They import the public API only."""
