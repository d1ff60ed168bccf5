-- Predictions are found by the ids of their hosts in all apps, which may share an account.
create index predictions_by_host_id_in_all_apps on predictions (host_id) where host_id is not null;
