# Sourced by the image of postgres once, before its first start: a fleet's database, and who may log in.
psql --set ON_ERROR_STOP=1 --username postgres <<END
create role codemachine_work;
create role codemachine_submit;
create role codemachine_look;
create role node login;
create database fleet owner node;
END
# No superuser: an agent with the network reaches the socket, and a superuser runs programs.
echo 'local fleet node trust' > "$PGDATA/pg_hba.conf"
