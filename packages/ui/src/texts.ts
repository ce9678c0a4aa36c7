// Every text of the page, in English. A translation is another object of this form.
import type { ErrorCode, JobKind } from '@svc/client/protocol'

const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`

const KINDS: Readonly<Record<JobKind, string>> = {
  ensure: 'Complete',
  'import-local': 'Import from disk',
  'import-hf': 'Get from the hub',
  'import-bt': 'Get from the swarm',
  'import-catalog': 'Get from the catalog',
  'import-oci': 'Get from a registry',
  companions: 'Get companions',
  verify: 'Verify',
  evict: 'Free the weights',
  gc: 'Collect garbage',
  outdated: 'Look for newer versions'
}

const ADVICE: Readonly<Partial<Record<ErrorCode, string>>> = {
  E_NO_SPACE: 'Free space first, then try again. What has arrived is kept.',
  E_SOURCE_UNAVAILABLE: 'Check the network, then try again. What has arrived is kept.',
  E_SOURCE_FORBIDDEN: 'The source requires a login, or acceptance of its terms on the page of the model.',
  E_RATE_LIMITED: 'The source asks to slow down. Start again later; a login raises the limit.',
  E_VERIFY_FAILED: 'Complete the model: its damaged files are fetched again.',
  E_UNKNOWN_REF: 'Check the name: the source does not have it.',
  E_KEPT: 'What the message names keeps the bytes here. If nothing else does, svc evict --force frees them.',
  E_NOT_IMPORTABLE: 'svc recognizes no model in it.'
}

export const TEXTS = {
  title: 'svc',
  justNow: 'just now',
  close: 'Close',
  dismiss: 'Dismiss the message',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
  copyFailed: 'The browser does not let this page copy; select the text instead',
  loading: 'Loading…',
  glance: 'At a glance',
  views: { models: 'Models', get: 'Get', jobs: 'Jobs', machine: 'Machine' },
  link: {
    connecting: 'Connecting…',
    up: 'Connected',
    away: 'The daemon does not answer. The page shows what it said last, and updates when it is back.',
    ended: 'svc ui has ended. Run svc ui again, and open its new link.',
    expired: "This page's link is no longer valid. Run svc ui again, and open its new link."
  },
  models: {
    columns: {
      name: 'Name',
      quant: 'Quant',
      size: 'Size',
      state: 'State',
      sharing: 'Sharing',
      companions: 'Companions',
      used: 'Last use'
    },
    filters: {
      all: 'All',
      complete: 'Complete',
      away: 'Not complete',
      shared: 'Shared',
      held: 'Held back',
      private: 'Private',
      newer: 'Newer version known'
    },
    sharing: { shared: 'shared', soon: 'not yet', private: 'private', held: 'held back', none: 'not shared' },
    reasonPrivate: 'you keep it to yourself',
    reasonOff: 'the swarm is off',
    reasonNoSeed: 'sharing is switched off',
    reasonAway: 'it is not complete',
    reasonSoon: 'it is announced from the next start of the daemon; Share announces it now',
    reasonVerifying: 'it is announced once it is verified',
    complete: 'complete',
    damaged: 'damaged',
    away: (missing: string) => `${missing} away`,
    missing: (missing: string) => `${missing} missing`,
    find: 'Find in models',
    show: 'Show',
    models: (count: number) => many(count, 'model'),
    /** A model may have several quants, each of which is a row. */
    count: (shown: number, all: number, models: number, bytes: string) =>
      `${shown === all ? many(all, 'quant') : `${shown} of ${many(all, 'quant')}`} of ${many(models, 'model')}, ${bytes}`,
    pick: (ref: string) => `Choose ${ref}`,
    pickAll: 'Choose all that are shown',
    picked: (count: number) => `${many(count, 'quant')} chosen`,
    clear: 'Choose none',
    notHere: (ref: string) => `There is no ${ref} here`,
    lookForIt: 'Look for it on the hub',
    malformed: 'no model',
    none: 'No models yet',
    noneText: 'Models that you get or import appear here, with the space they take and who gets them from you.',
    first: 'Get the first one',
    noMatch: 'No model matches.',
    map: 'Disk use',
    verifyAll: 'Verify all',
    garbage: 'Collect garbage…',
    newer: 'newer version',
    pinned: 'pinned',
    hasCompanions: 'here'
  },
  map: {
    label: 'Disk use: a tile for each quant, as large as the space that only it needs',
    hint: 'One tile for each quant, as large as the space that only it needs. Arrow keys move between them.',
    shared: 'needed by several models',
    kept: 'kept by tags, views and imports without a name',
    garbage: 'belongs to no model',
    others: (count: number) => many(count, 'smaller model'),
    within: (repo: string) => `${repo}, needed by several quants`,
    both: 'several quants',
    tile: (name: string, bytes: string, share: string) => `${name} ${bytes}, ${share} of the store`
  },
  model: {
    facts: {
      size: 'Size',
      state: 'State',
      sharing: 'Sharing',
      used: 'Last use',
      imported: 'Imported',
      origin: 'From',
      format: 'Kind',
      family: 'Architecture',
      parameters: 'Parameters',
      context: 'Context',
      template: 'Chat template',
      license: 'Licence',
      companions: 'Companions',
      manifest: 'Manifest'
    },
    kinds: {
      'weights.gguf': 'GGUF',
      'weights.safetensors': 'safetensors',
      opaque: 'files as they are',
      'vision-projector': 'with vision',
      draft: 'with a draft head',
      adapter: 'with adapters'
    },
    tokens: (count: number) => `${count.toLocaleString('en')} tokens`,
    files: (count: number) => many(count, 'file'),
    card: 'Model card',
    malformed: (files: string) => `This is no model: no runtime can load ${files}.`,
    remedy: (isDamaged: boolean, isOwn: boolean) =>
      isDamaged && isOwn
        ? 'Some of its files were found damaged, and nobody else is known to have them. Import it again from the files that it came from.'
        : isDamaged
          ? 'Some of its files were found damaged. They can be fetched again; the rest is kept.'
          : 'Some of its files are not here. They can be fetched again.',
    importAgain: 'Import again from disk…',
    evicting: 'the weights are being freed',
    hasCompanions: 'the small files beside the model are here',
    noCompanions: 'none',
    never: 'not since its import',
    doors: 'Who gets it',
    doorNames: {
      swarm: 'Swarm',
      webseed: 'Webseed',
      'hub-mirror': 'Hub mirror',
      'oci-mirror': 'Registry mirror',
      's3-mirror': 'Bucket mirror',
      publish: 'svc publish',
      export: 'svc export',
      push: 'svc push'
    } as Readonly<Record<string, string>>,
    doorClosed: 'closed',
    doorGiven: 'allowed',
    doorWithheld: 'withheld',
    details: 'Details',
    commands: 'Load it with',
    openFolder: 'Open folder',
    opened: 'The folder is open',
    notOpened: (folder: string) => `There is no desktop here. The folder is ${folder}`,
    copyPath: 'Copy path',
    verify: 'Verify',
    complete: 'Fetch what is missing',
    share: 'Share…',
    keepPrivate: 'Keep private',
    makePublic: 'Share again',
    nowPrivate: 'It is no longer shared',
    nowPublic: 'It may be shared again',
    pin: 'Pin',
    unpin: 'Unpin',
    nowPinned: 'Its bytes stay here from now on',
    nowUnpinned: 'Its bytes may be freed again when space is short',
    evict: 'Free the weights',
    remove: 'Remove…'
  },
  share: {
    title: (ref: string) => `Share ${ref}`,
    reach: {
      nobody: 'Nobody can fetch it now.',
      machine: 'Only this machine can reach it.',
      network: 'Machines in this network can fetch it.',
      anybody: 'Anybody who has the link can fetch it, wherever this machine can be reached.'
    },
    command: {
      machine: 'What to type for another store on this machine',
      network: 'What to type on the other machine',
      anybody: 'What to type on the other machine'
    },
    magnet: 'Magnet link',
    qr: 'QR code of the magnet link',
    tooLong: 'The link is too long for a QR code.'
  },
  remove: {
    title: (ref: string) => `Remove ${ref}?`,
    frees: (bytes: string, quants: number) =>
      quants === 1
        ? `This frees ${bytes}, which only this model needs.`
        : `This frees at least ${bytes}, which no other model needs.`,
    shared: (bytes: string) => `${bytes} stay, since other models need them too.`,
    collect: 'Free the space at once',
    confirm: 'Remove',
    done: (ref: string) => `${ref} was removed`
  },
  garbage: {
    title: 'Collect garbage',
    counting: 'Counting…',
    found: (blobs: number, bytes: string) => `${many(blobs, 'blob')} with ${bytes} belong to no model.`,
    nothing: 'Nothing to collect: every blob belongs to a model.',
    confirm: 'Collect'
  },
  get: {
    label: 'Search, or paste the source of a model',
    placeholder: 'qwen3 gguf',
    kinds: [
      ['qwen3 gguf', 'words search the hub'],
      ['owner/name', 'a repository, or its address, shows its quants'],
      ['svc import bt …', 'what svc share prints, or a magnet link, fetches from peers'],
      ['registry.example/owner/model:tag', 'an OCI image comes from its registry'],
      ['/path/to/models', 'a folder or file of this machine is imported']
    ],
    go: 'Look',
    results: (count: number) => `${many(count, 'repository', 'repositories')} found`,
    nothing: 'Nothing found.',
    more: 'More',
    columns: {
      repo: 'Repository',
      parameters: 'Parameters',
      formats: 'Formats',
      license: 'License',
      downloads: 'Downloads',
      updated: 'Updated'
    },
    gated: 'gated',
    here: 'here',
    plan: (repo: string) => `Quants of ${repo}`,
    planColumns: { quant: 'Quant', size: 'Size', memory: 'Memory', fit: 'Fit', here: 'Here' },
    fit: { fits: 'fits', tight: 'just fits', no: 'too large' },
    allHere: 'all',
    license: (license: string) => `License: ${license}`,
    needsAccess: 'The hub requires consent for this model.',
    start: 'Get the selected quants',
    startSize: (bytes: string) => `Get the selected quants: ${bytes} to fetch`,
    chooseOne: 'Choose a quant first',
    back: 'Back to the results',
    advice: (text: string) => `Recommended: ${text}.`,
    recommended: 'recommended',
    pathPlaceholder: '/path/to/model.gguf',
    importAs: (name: string) => `Paste the path of the file or folder: it will be imported as ${name}.`,
    absent: (path: string) => `There is no ${path} on this machine`,
    above: (folder?: string) =>
      folder === undefined
        ? 'A path begins with / here: paste it whole. Nothing was sent to the hub.'
        : `The folder ${folder} is there. Nothing was sent to the hub.`,
    as: 'Name here, as in acme/model',
    pin: 'Manifest digest from the sharer (sha256:…)',
    import: 'Import',
    meaning: {
      local: (path: string) => `A folder or file of this machine: ${path}`,
      oci: (image: string) => `An OCI image: ${image}`,
      bt: 'A magnet link: the pin says which model it must be',
      shared:
        'Others can fetch it from here once it is announced. To keep your own models private, see Limits under Machine.'
    }
  },
  jobs: {
    kinds: KINDS,
    started: (kind: string) => `Started: ${kind}`,
    none: 'No jobs',
    noneText: 'Imports, downloads and checks appear here, with their progress.',
    all: 'Whole store',
    running: 'Running',
    ended: 'Ended',
    states: { waiting: 'waiting', fetching: 'running', done: 'done', failed: 'failed' },
    progress: (done: string, total: string) => `${done} of ${total}`,
    eta: (time: string) => `${time} left`,
    sources: (sources: number) => many(sources, 'source'),
    peers: (peers: number) => many(peers, 'peer'),
    stalled: 'Stalled: nothing has arrived for a while',
    stalledNobody: 'Stalled: no connected peer has it',
    cancelled: 'Cancelled',
    pause: 'Pause',
    paused: 'paused',
    isPaused: (name: string) => `${name} is paused; what has arrived is kept`,
    kept: 'What has arrived is kept. Continue goes on from there.',
    forget: 'Forget',
    refused: 'What went wrong',
    terms: 'Open its page and terms',
    token: 'Access token of the hub, which checks it before it is stored',
    login: 'Log in and try again',
    replaceToken: 'Replace the other token',
    freeModels: 'Choose models to free',
    search: 'Search for it',
    anotherFile: 'Choose another file',
    interrupted: 'interrupted',
    goOn: 'Continue',
    again: 'Try again',
    ends: (kind: string, name: string) => `${kind}: ${name} is done`,
    fails: (kind: string, name: string, why: string) => `${kind}: ${name} failed. ${why}`,
    lost: (kind: string, name: string) => `${kind}: ${name} ended with the daemon that did it. Start it again.`,
    wasInterrupted: (kind: string, name: string) =>
      `${kind}: ${name} was interrupted by the end of the daemon. Continue it under Jobs.`,
    rateLine: (rate: string) => `Rate over time, now ${rate}`,
    advice: ADVICE,
    collected: (blobs: number, bytes: string) => `${many(blobs, 'blob')}, ${bytes}`
  },
  tools: {
    title: 'In other tools on this disk',
    private: 'Each stays where its tool has it, and is private here until you share it.',
    shared: 'Each stays where its tool has it. Like your own models, they are shared.',
    adopt: 'Adopt',
    becomes: (tool: string, as: string, quants: string) => `${tool} → ${as}${quants === '' ? '' : `: ${quants}`}`,
    takes: (bytes: string) => `takes ${bytes}`,
    takesNothing: 'takes no space',
    names: {
      hf: 'Hub cache',
      ollama: 'Ollama',
      lmstudio: 'LM Studio',
      llamacpp: 'llama.cpp',
      docker: 'Docker Model Runner',
      dir: 'Folder'
    } as Readonly<Record<string, string>>
  },
  machine: {
    network: 'Network',
    log: 'Log',
    showLog: 'Show the log',
    newLog: 'Read again',
    logHint: 'The last lines that the daemon wrote.',
    noLog: 'The daemon writes its log where this page cannot read it, such as a terminal.',
    disk: 'Disk',
    health: 'Health',
    off: 'The swarm is off ([swarm] enabled in the configuration).',
    peers: 'Peers',
    down: 'Down',
    up: 'Up',
    uploaded: 'Uploaded',
    ratio: 'Ratio',
    announced: 'Announced',
    heldBack: 'Held back',
    ports: 'Reachability',
    overTime: 'Down and up over time',
    limits: 'Limits',
    seed: 'Share models',
    seedLocal: 'Share models imported from disk, too',
    upload: 'Upload limit in MiB/s (0: no limit)',
    limited: (rate?: string) => (rate === undefined ? 'Uploads are not limited' : `Uploads are limited to ${rate}`),
    download: 'Download limit in MiB/s (0: no limit)',
    downLimited: (rate?: string) =>
      rate === undefined ? 'Downloads are not limited' : `Downloads are limited to ${rate}`,
    torrents: 'Shared and fetched over BitTorrent',
    columns: {
      name: 'Name',
      state: 'State',
      peers: 'Peers',
      down: 'Down',
      up: 'Up',
      uploaded: 'Uploaded',
      ratio: 'Ratio'
    },
    states: { verifying: 'verifying', fetching: 'fetching', seeding: 'announced' },
    noTorrents: 'Nothing is shared or fetched.',
    store: 'Models take',
    free: 'Free',
    budget: 'Budget',
    noBudget: 'none ([store] max_bytes)',
    keptFree: 'Kept free',
    diskBar: (used: string, free: string) => `Models take ${used}; ${free} are free`,
    ok: 'Everything is in order.',
    troubles: (count: number) => `${many(count, 'check')} found a problem.`,
    levels: { ok: 'In order', note: 'Note', warn: 'Warning', bad: 'Problem' },
    check: 'Check again',
    version: 'Version',
    since: 'Running since',
    root: 'Store',
    blobs: 'Blobs',
    unfinished: 'Unfinished downloads',
    quarantined: 'Corrupt, moved aside',
    leftover: (bytes: string, files: number) => `${bytes} in ${many(files, 'file')}`,
    dropLeftovers: 'Free these'
  }
} as const
