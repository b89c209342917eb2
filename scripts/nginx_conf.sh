#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Prints the configuration of an nginx that serves one folder over plain HTTP in the foreground, and keeps all that is
# its own in another one. For tests, the demonstration and measurements.
#
#     nginx_conf.sh OWN ADDRESS:PORT SERVED [put]        put: clients may add files
set -euo pipefail
own=$1 listen=$2 served=$3 put=${4:-}
cat <<END
daemon off;
master_process off;
pid $own/nginx.pid;
error_log $own/nginx.error;
events { worker_connections 512; }
http {
    access_log $own/nginx.access;
    client_body_temp_path $own/nginx.body;
    proxy_temp_path $own/nginx.proxy;
    fastcgi_temp_path $own/nginx.fastcgi;
    uwsgi_temp_path $own/nginx.uwsgi;
    scgi_temp_path $own/nginx.scgi;
    client_max_body_size 0;
    default_type text/plain;
    sendfile on;
    server {
        listen $listen;
        root $served;
        ${put:+dav_methods PUT;}
    }
}
END
