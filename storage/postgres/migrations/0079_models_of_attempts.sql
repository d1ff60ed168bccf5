-- The model of a vendor call, by which costs are added up, and its beginning after the arrival of the request. Both are
-- null in rows of earlier versions.
alter table attempts add column model text, add column started_ms integer;
