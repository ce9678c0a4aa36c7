import type { ViewsTable } from './standing.ts'
import type { TrustTable } from './trust.ts'
import {
  addressRanges,
  asIs,
  eitherOf,
  hostNames,
  keysFile,
  milliseconds,
  or,
  proofTime,
  repositories,
  storeId,
  unlessEmpty,
  zoneName
} from './values.ts'
import type { WebseedTable } from './webseed.ts'

/** The type of a configuration key. `bytes` is a number or a size as in `"50GB"`, `strings` a list of strings, `identities` one of tables `{ issuer, subject }`. */
export type KeyType = 'string' | 'boolean' | 'count' | 'bytes' | 'seconds' | 'strings' | 'identities'

type ValueOf<T extends KeyType> = T extends 'string'
  ? string
  : T extends 'boolean'
    ? boolean
    : T extends 'strings'
      ? readonly string[]
      : number

export interface ConfigKey {
  readonly type: KeyType
  readonly summary: string
}

/** A key of a section: the setting that it sets, and what its value becomes. */
interface SettingKey<Type extends KeyType, Name extends string, Setting> extends ConfigKey {
  readonly type: Type
  readonly setting: Name
  readonly read: (value: ValueOf<Type> | undefined) => Setting
}

const key = <Type extends KeyType, Name extends string, Setting>(
  type: Type,
  setting: Name,
  read: (value: ValueOf<Type> | undefined) => Setting,
  summary: string
): SettingKey<Type, Name, Setting> => ({ type, setting, read, summary })

const flag = <Name extends string>(setting: Name, fallback: boolean, summary: string) =>
  key('boolean', setting, (value = fallback) => value, summary)

const text = <Name extends string>(setting: Name, summary: string) => key('string', setting, unlessEmpty, summary)

const DEFAULT_DAY_BYTES = 500e9
const DEFAULT_IMPORT_SECONDS = 12 * 3600

/**
 * Every key of the configuration file (spec conf.3 to conf.8), as listed in docs/configuration.md: its type, its setting, what
 * it is for, and what it becomes, with the default. The types of file and settings, the check, the man page and the reference follow.
 */
export const CONFIG_KEYS = {
  store: {
    root: text('root', 'folder of the store'),
    expect: key('string', 'expect', storeId, 'id of the store that must be there; no other is opened or created'),
    max_bytes: key(
      'bytes',
      'maxBytes',
      asIs,
      'most bytes that blobs may take; beyond it, models that can be fetched again are evicted'
    ),
    min_free: key('bytes', 'minFreeBytes', or(0), 'bytes to keep free on the disk, in the same way'),
    proof_days: key('count', 'proofMs', proofTime, 'days for which a proof of another copy allows an eviction')
  },
  hub: {
    endpoint: text('endpoint', 'base address of the model hub'),
    use_client_token: flag('usesClientToken', true, 'where SVC_HF_TOKEN is not set, use the token of the hub client'),
    skip_unrecognized: flag('skipUnrecognized', true, 'do not fetch files that would not be stored'),
    check: key(
      'string',
      'check',
      eitherOf('[hub] check', 'never', 'daily'),
      'how often the hub is asked for newer commits of what is here: "never" or "daily"'
    )
  },
  swarm: {
    enabled: flag('enabled', true, 'run the swarm client'),
    seed: flag('seed', true, 'announce and serve complete artifacts'),
    upload_limit: key('bytes', 'uploadLimitBytesPerSecond', or(0), 'bytes per second, 0 is unlimited'),
    no_seed_verify: flag('noSeedVerify', false, 'skip the re-hash at start; unsafe'),
    dht: flag('dht', true, 'use DHT and peer exchange'),
    dht_bootstrap: key('strings', 'dhtBootstrap', asIs, 'host:port of DHT nodes to start from'),
    webseed_addr: key('string', 'webseedAddr', or('127.0.0.1:0'), 'address of the webseed listener, "" turns it off'),
    peer_addr: key('string', 'peerAddr', or('0.0.0.0:0'), 'address of the peer listener'),
    trackers: key(
      'strings',
      'trackers',
      or<readonly string[]>([]),
      'trackers to announce to, besides the recorded ones'
    ),
    fill_timeout: key('seconds', 'fillTimeoutMs', milliseconds(600), 'seconds without a byte before a fill fails'),
    seed_restricted: flag('seedRestricted', false, 'also serve models that needed a token to fetch'),
    // undefined: not decided yet, which means true
    seed_local: key('boolean', 'seedLocal', asIs, 'false makes imports from disk private unless they say otherwise'),
    seed_on_import: flag('seedOnImport', false, 'join at once after an import'),
    trusted: key('strings', 'trusted', addressRanges, 'address ranges of your own fleet, e.g. "10.0.0.0/8"'),
    zone: key(
      'string',
      'zone',
      zoneName,
      'zone of this node; what peers in the same zone have is not fetched from elsewhere'
    ),
    lsd: flag('lsd', false, 'look for peers in the local network by multicast')
  },
  catalog: {
    endpoint: text('endpoint', 'base address of the catalog provider'),
    upload_limit: key('bytes', 'uploadLimitBytesPerSecond', asIs, 'bytes per second; unset takes that of [swarm]')
  },
  mirror: {
    hub_addr: text('hubAddr', 'address that answers as a model hub does; unset: none'),
    oci_addr: text('ociAddr', 'address that answers as an OCI registry does; unset: none'),
    s3_addr: text('s3Addr', 'address that answers as an object store does, read-only; unset: none'),
    s3_keys: key(
      'string',
      's3Keys',
      keysFile,
      'file of its keys, lines ID:SECRET; unset: any program of this machine may read'
    ),
    names: key('strings', 'names', hostNames, 'further host names that the mirrors answer to'),
    on_demand: flag('isOnDemand', false, 'let clients of the mirrors start downloads of missing models'),
    on_demand_allow: key(
      'strings',
      'allows',
      repositories,
      'repositories that clients may fetch: "owner/name", "owner/*" or "*"'
    ),
    on_demand_bytes: key(
      'bytes',
      'bytesPerDay',
      or(DEFAULT_DAY_BYTES),
      'bytes fetched on demand within 24 hours, at most'
    ),
    on_demand_revisions: key(
      'string',
      'revisions',
      eitherOf('[mirror] on_demand_revisions', 'named', 'any'),
      'commits that clients may fetch: "named" by a branch or tag, or "any"'
    ),
    on_demand_anonymous: flag('isAnonymous', false, 'let clients beyond loopback start downloads without a token'),
    on_demand_timeout: key(
      'seconds',
      'timeoutMs',
      milliseconds(DEFAULT_IMPORT_SECONDS),
      'seconds after which an import on demand is given up'
    )
  },
  network: {
    download_limit: key(
      'bytes',
      'downloadLimitBytesPerSecond',
      or(0),
      'bytes per second from all sources together, 0 is unlimited'
    )
  },
  metrics: {
    addr: text('addr', 'address of metrics for Prometheus and of health checks; unset: none')
  }
} as const

/** The content of a file: every section and key is optional; tables of webseeds are keyed by their URLs, rules of trust and standing views are lists. */
export type FileConfig = SectionsConfig & {
  webseed?: Readonly<Record<string, WebseedTable>>
  trust?: readonly TrustTable[]
  views?: readonly ViewsTable[]
}

type SectionsConfig = {
  -readonly [S in keyof typeof CONFIG_KEYS]?: {
    -readonly [K in keyof (typeof CONFIG_KEYS)[S]]?: (typeof CONFIG_KEYS)[S][K] extends {
      type: infer T extends KeyType
    }
      ? ValueOf<T>
      : never
  }
}

type SettingsOfSection<Keys> = {
  readonly [K in keyof Keys as Keys[K] extends { readonly setting: infer Name extends string }
    ? Name
    : never]: Keys[K] extends {
    readonly read: (value: never) => infer Setting
  }
    ? Setting
    : never
}

/** What the keys of each section become. */
export type Settings = { readonly [S in keyof typeof CONFIG_KEYS]: SettingsOfSection<(typeof CONFIG_KEYS)[S]> }

/** @throws ConfigError naming the key of an invalid value */
export function settingsOf(file: FileConfig): Settings {
  const sections = Object.entries(CONFIG_KEYS).map(([section, keys]) => {
    const values: Readonly<Record<string, unknown>> = file[section as keyof typeof CONFIG_KEYS] ?? {}
    const settings = Object.entries(keys).map(([name, { setting, read }]) => [
      setting,
      (read as (value: unknown) => unknown)(values[name])
    ])
    return [section, Object.fromEntries(settings)] as const
  })
  return Object.fromEntries(sections) as Settings
}
