-- Kinds of entries: `restore` undoes a refund, `consume` uses units and `return` gives them back, and `suspend` lets a
-- subscription outlast its period until it is resumed.
alter table asset_entries drop constraint asset_entries_kind_check;
alter table asset_entries add constraint asset_entries_kind_check
    check (kind in (
        'grant', 'refund', 'restore', 'consume', 'return', 'end', 'cancel', 'suspend', 'resume', 'adjust'));

alter table assets add column grace_ends_at timestamptz;

-- The units of an asset may be negative: those that were refunded after they were used count against later ones.

alter table assets drop constraint assets_quantity_check;

update assets set quantity = entered.quantity
from (
    select app_id, uid, name, subscription, sum(
        case kind when 'grant' then 1 when 'refund' then -1 else 0 end
        * case type when 'consumable' then quantity else 1 end
        + case kind when 'adjust' then quantity else 0 end) as quantity
    from asset_entries where type <> 'subscription' group by app_id, uid, name, subscription
) entered
where (assets.app_id, assets.uid, assets.name, assets.subscription)
    = (entered.app_id, entered.uid, entered.name, entered.subscription) and assets.quantity <> entered.quantity;

update assets set quantity = total_quantity + entered.quantity
from (
    select a.app_id, a.uid, a.name, a.subscription, sum(adjusted.quantity) as quantity
    from assets a
    join asset_entries adjusted using (app_id, uid, name, subscription)
    where a.type = 'subscription' and adjusted.kind = 'adjust' and adjusted.entry_id > (
        select min(entry_id) from asset_entries granted
        where (granted.app_id, granted.uid, granted.name, granted.subscription)
                = (a.app_id, a.uid, a.name, a.subscription)
            and granted.kind = 'grant' and granted.ends_at = a.paid_ends_at)
    group by a.app_id, a.uid, a.name, a.subscription
) entered
where (assets.app_id, assets.uid, assets.name, assets.subscription)
    = (entered.app_id, entered.uid, entered.name, entered.subscription);
