// The texts of the pages of configs: the list, new apps and configs, the form, JSON, drafts, restoration and deletion.

export const CONFIG_TEXTS = {
  configsPage: {
    lead: "An app has configs of several kinds. What is set in them applies from the next request on.",
    newApp: "New app", newAppText: "An app has its own users, configs and keys. Clients name it by its id, which cannot be changed.", appId: "App id",
    appIdHelp: "1 to 64 of A-Z a-z 0-9 . _ -", title: "Title", titleHelp: "The name that users see.", currency: "Currency", currencyHelp: "Three letters, as in USD. All prices of the app are in it.",
    appExists: (app) => `The app ${app} exists already.`, newConfig: "New config", newConfigText: "The config is opened as a draft. Nothing is stored until you save it.",
    name: "Name", nameHelp: "Other configs and requests name it by this.", oneName: "An app has one config of this kind, named default.", open: "Open draft",
    opens: "A config with this name exists already. It is opened as it is.", noApp: "Make an app first: a config belongs to an app.", order: "Order of strategies",
    orderOf: "Order of strategies:", anApp: "choose an app …", inApp: "In the app", searchHint: "A config or a setting", noneNamed: "No config has this name. See the settings above.", fields: (text) => `Settings that match “${text}”`, in: "in", drafts: "Your unsaved drafts", of: (kind, app) => `of kind ${kind}, app ${app}`, none: "No config matches.", noConfigs: "No configs yet. Make an app, then the configs that it needs.",
  },
  configForm: {
    find: "Find a field", noField: (text) => `No field of this config matches “${text}”.`, all: "Show all fields", differs: "Set", differsHelp: "Differs from the default",
    groups: { account: "Account and access", model: "Model", voice: "Voice and language", content: "Contents", times: "Times and timeouts", limits: "Limits", kept: "How long it is kept", money: "Prices", other: "Other" },
    missing: (name) => `${name} (missing)`, missingText: (name, kinds) => `No config ${name} of kind ${kinds} exists in this app.`, noneOf: (kinds) => `This app has no config of kind ${kinds} yet.`, create: "Create one",
    openConfig: (name) => `Open ${name}`, up: (name) => `Move ${name} up`, down: (name) => `Move ${name} down`, take: (name) => `Remove ${name}`, addTo: (name) => `Add to ${name}`, pick: "Add …", empty: "Nothing is named here.",
    orderLead: "A request tries its strategies in the order in which it names them, or in that of the app.", order: "Order of strategies",
    warnings: "Probable mistakes", errors: "What the server would refuse", value: "value", line: (number) => `Line ${number}`, jsonGood: "The JSON is valid, and the server accepts it.",
    mustBeObject: "must be an object: it begins with {", brokenJson: "Correct the JSON before you review the changes.", refused: "The server would refuse this. Correct what is named above.",
    draft: "This is your unsaved draft, which this browser tab has kept.", draftOld: (revision) => `Revision ${revision} was saved after this draft was begun. The review shows everything that your draft would change in it.`,
    copied: (app) => `Copied from the app ${app}, and not saved yet`,
    conflict: "Somebody else has saved this config in the meantime.", keptAsDraft: "Yours was not saved, but is kept as a draft.", reload: "Show what was saved", reloaded: "This is what was saved, and your draft on top of it.",
    draftSecrets: "Secrets are not kept in drafts: type them again.", discard: "Discard the draft", deleted: "This config was deleted. Restore a revision from its history, or save a new value.",
  },
  restore: {
    restore: "Restore", compare: "Compare",
    title: (revision) => `Restore revision ${revision}`, text: (revision) => `The values of revision ${revision} become active again, as a new revision. The current revision stays in the history.`,
    same: (revision) => `Revision ${revision} has the same values as the current one. There is nothing to restore.`, all: "The config is deleted now. All values of the revision come back.",
    changes: "What changes", compared: (revision) => `From revision ${revision} to the current one`, reason: "Why", done: (revision) => `Revision ${revision} was restored.`, current: "Current", again: "Close this, open the config again, and look at its history.", newest: "Newest revisions", older: "Older revisions",
  },
  deletion: {
    title: "Delete", text: "Requests and configs that name this config fail from now on. Its revisions are kept: it can be restored from its history.", app: "The app, and all that its clients do, stops working immediately.",
    none: "No other config names it.", named: (count) => `${count === 1 ? "One config names" : `${count} configs name`} it and will not work without it:`, done: (name) => `${name} was deleted.`,
  },
};
