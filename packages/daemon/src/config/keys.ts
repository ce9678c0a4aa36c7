import type { ViewsTable } from './standing.ts'
import type { TrustTable } from './trust.ts'
import type { WebseedTable } from './webseed.ts'

/** The type of a configuration key. `bytes` is a number or a size as in `"50GB"`, `strings` a list of strings, `identities` one of tables `{ issuer, subject }`. */
export type KeyType = 'string' | 'boolean' | 'count' | 'bytes' | 'seconds' | 'strings' | 'identities'

export interface ConfigKey {
  readonly type: KeyType
  readonly summary: string
}

/** Every key of the configuration file (spec conf.3 to conf.8), as listed in docs/configuration.md. */
export const CONFIG_KEYS = {
  store: {
    root: { type: 'string', summary: 'folder of the store' },
    expect: { type: 'string', summary: 'id of the store that must be there; no other is opened or created' },
    max_bytes: {
      type: 'bytes',
      summary: 'most bytes that blobs may take; beyond it, models that can be fetched again are evicted'
    },
    min_free: { type: 'bytes', summary: 'bytes to keep free on the disk, in the same way' },
    proof_days: { type: 'count', summary: 'days for which a proof of another copy allows an eviction' }
  },
  hub: {
    endpoint: { type: 'string', summary: 'base address of the model hub' },
    use_client_token: { type: 'boolean', summary: 'where SVC_HF_TOKEN is not set, use the token of the hub client' },
    skip_unrecognized: { type: 'boolean', summary: 'do not fetch files that would not be stored' },
    check: {
      type: 'string',
      summary: 'how often the hub is asked for newer commits of what is here: "never" or "daily"'
    }
  },
  swarm: {
    enabled: { type: 'boolean', summary: 'run the swarm client' },
    seed: { type: 'boolean', summary: 'announce and serve complete artifacts' },
    upload_limit: { type: 'bytes', summary: 'bytes per second, 0 is unlimited' },
    no_seed_verify: { type: 'boolean', summary: 'skip the re-hash at start; unsafe' },
    dht: { type: 'boolean', summary: 'use DHT and peer exchange' },
    dht_bootstrap: { type: 'strings', summary: 'host:port of DHT nodes to start from' },
    webseed_addr: { type: 'string', summary: 'address of the webseed listener, "" turns it off' },
    peer_addr: { type: 'string', summary: 'address of the peer listener' },
    trackers: { type: 'strings', summary: 'trackers to announce to, besides the recorded ones' },
    fill_timeout: { type: 'seconds', summary: 'seconds without a byte before a fill fails' },
    seed_restricted: { type: 'boolean', summary: 'also serve models that needed a token to fetch' },
    seed_local: { type: 'boolean', summary: 'false makes imports from disk private unless they say otherwise' },
    seed_on_import: { type: 'boolean', summary: 'join at once after an import' },
    trusted: { type: 'strings', summary: 'address ranges of your own fleet, e.g. "10.0.0.0/8"' },
    zone: {
      type: 'string',
      summary: 'zone of this node; what peers in the same zone have is not fetched from elsewhere'
    },
    lsd: { type: 'boolean', summary: 'look for peers in the local network by multicast' }
  },
  catalog: {
    endpoint: { type: 'string', summary: 'base address of the catalog provider' },
    upload_limit: { type: 'bytes', summary: 'bytes per second; unset takes that of [swarm]' }
  },
  mirror: {
    hub_addr: { type: 'string', summary: 'address that answers as a model hub does; unset: none' },
    oci_addr: { type: 'string', summary: 'address that answers as an OCI registry does; unset: none' },
    s3_addr: { type: 'string', summary: 'address that answers as an object store does, read-only; unset: none' },
    s3_keys: {
      type: 'string',
      summary: 'file of its keys, lines ID:SECRET; unset: any program of this machine may read'
    },
    names: { type: 'strings', summary: 'further host names that the mirrors answer to' },
    on_demand: { type: 'boolean', summary: 'let clients of the mirrors start downloads of missing models' },
    on_demand_allow: {
      type: 'strings',
      summary: 'repositories that clients may fetch: "owner/name", "owner/*" or "*"'
    },
    on_demand_bytes: { type: 'bytes', summary: 'bytes fetched on demand within 24 hours, at most' },
    on_demand_revisions: {
      type: 'string',
      summary: 'commits that clients may fetch: "named" by a branch or tag, or "any"'
    },
    on_demand_anonymous: { type: 'boolean', summary: 'let clients beyond loopback start downloads without a token' },
    on_demand_timeout: { type: 'seconds', summary: 'seconds after which an import on demand is given up' }
  },
  metrics: {
    addr: { type: 'string', summary: 'address of metrics for Prometheus and of health checks; unset: none' }
  }
} as const satisfies Record<string, Record<string, ConfigKey>>

type ValueOf<T extends KeyType> = T extends 'string'
  ? string
  : T extends 'boolean'
    ? boolean
    : T extends 'strings'
      ? readonly string[]
      : number

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
