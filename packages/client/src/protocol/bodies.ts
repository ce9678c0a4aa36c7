import * as Type from 'typebox'
import { CompanionsPinSchema, PeerListSchema, RefSchema } from './fields.ts'
import { count, flag, listOf, named, text } from './schema.ts'

/**
 * Request bodies (spec http.6, http.7). The daemon ignores and logs unknown fields, so no schema forbids them; the
 * static types omit them. Strings have no pattern, since the daemon's own checks produce messages that name the fix.
 */

const AsSchema = text('`ns/name`, lower case')
const PrivateSchema = flag('neither announced nor shared')
const ReplaceSchema = flag(
  'false: the job fails if a quant of that name is another artifact here, unless that came from the same hub repository; true when absent'
)

const EvictSchema = flag(
  'if space is short, evicts models that can be fetched again; else the job fails and names them (additive)'
)

const MalformedSchema = Type.Enum(['keep', 'refuse'], {
  description:
    'weights that no runtime can load, by their headers (spec rec.12): `keep` (when absent) imports them with a warning, `refuse` fails the job and imports nothing (additive)'
})

/** Fields that imports from disk, hub, catalog and OCI have in common (spec add.1, add.6, add.10, add.45). */
const selectionFields = {
  names: Type.Optional(
    Type.Enum(['upstream', 'normalized'], {
      description: 'which names `*.gguf` files get; `upstream` when absent'
    })
  ),
  quants: Type.Optional(listOf(Type.String(), 'only these; compared in lower case')),
  files: Type.Optional(listOf(Type.String(), 'globs: only these weights and aux files')),
  private: Type.Optional(PrivateSchema),
  replace: Type.Optional(ReplaceSchema),
  evict: Type.Optional(EvictSchema),
  malformed: Type.Optional(MalformedSchema)
}

/** Files as they are (spec rec.32): of imports from disk, hub and OCI, and of pinned ones. */
const opaqueFields = {
  recognise: Type.Optional(
    Type.Enum(['opaque'], {
      description:
        'takes every file as it is, or those that `files` match, as one artifact of the quant `raw` (additive)'
    })
  ),
  allowPickle: Type.Optional(
    flag('with `recognise`, also takes pickles, which can run code when they are loaded (additive)')
  )
}

const AuxSchema = Type.Union(
  [Type.Literal('all'), Type.Literal('none'), Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 })],
  {
    description:
      'what to import beside the weights: `one` for the nearest projector and draft head, `mmproj` or `draft` for one of them; precisions of projectors (`f16`), `draft:q8_0`, `imatrix`, `lora`; `all` when absent'
  }
)

/** Body of `POST /v1/ensure` (spec route.7). */
export const EnsureBodySchema = named('EnsureBody', { ref: RefSchema, evict: Type.Optional(EvictSchema) })
export type EnsureBody = Type.Static<typeof EnsureBodySchema>

/** Body of `POST /v1/companions` (spec add.49). */
export const CompanionsBodySchema = named('CompanionsBody', { ref: RefSchema })
export type CompanionsBody = Type.Static<typeof CompanionsBodySchema>

/** Body of `POST /v1/import/local` (spec route.14). */
export const ImportLocalBodySchema = named('ImportLocalBody', {
  paths: Type.Array(Type.String(), { minItems: 1, description: 'absolute paths of files and folders' }),
  as: AsSchema,
  companions: Type.Optional(
    Type.Enum(['loaders', 'all'], {
      description:
        'which companions are shared with the model: those that loaders read by name (when absent), or all but secrets (additive)'
    })
  ),
  aux: Type.Optional(AuxSchema),
  ...opaqueFields,
  ...selectionFields
})
export type ImportLocalBody = Type.Static<typeof ImportLocalBodySchema>

/** Files that are stored under other names, such as in the caches of other tools (spec add.27). */
export const AdoptBodySchema = named('AdoptBody', {
  as: AsSchema,
  files: Type.Array(
    Type.Object({
      name: text('in the artifact, with `/` between folders'),
      path: text('absolute path of the regular file; no component is a link'),
      sha256: Type.Optional(text('`sha256:<hex>` that the bytes must have')),
      gitSha1: Type.Optional(text("40 hex characters, git's name of the blob"))
    }),
    { minItems: 1 }
  ),
  hub: Type.Optional(
    Type.Object(
      { repo: Type.String(), revision: Type.Optional(Type.String()) },
      {
        description:
          'where the files came from, as their cache says; recorded if it has a commit and every file a digest, which is checked. Without a commit the hub is asked for its latest'
      }
    )
  ),
  own: Type.Optional(
    Type.Boolean({
      description:
        "the files are their owner's own, and no tool downloaded them; of files in a tool's cache this is not believed (additive)"
    })
  ),
  names: selectionFields.names,
  private: selectionFields.private,
  replace: selectionFields.replace,
  malformed: selectionFields.malformed
})
export type AdoptBody = Type.Static<typeof AdoptBodySchema>

/** Body of `POST /v1/import/hf`, and of its plan (spec route.17). */
export const ImportHfBodySchema = named('ImportHfBody', {
  repo: text('`org/name` on the hub, or `name` for one without an owner'),
  revision: Type.Optional(text('branch, tag or commit; the default branch when absent')),
  follows: Type.Optional(
    text('the branch or tag at which `revision`, a commit, was found; the model follows it (additive)')
  ),
  keepBefore: Type.Optional(
    flag('if the name changes its artifact, the old one gets the tag `before-<date>` (additive)')
  ),
  as: Type.Optional(AsSchema),
  aux: Type.Optional(AuxSchema),
  ...opaqueFields,
  ...selectionFields
})
export type ImportHfBody = Type.Static<typeof ImportHfBodySchema>

/** Body of `POST /v1/import/hf/plan`. */
export const ImportHfPlanBodySchema = named('ImportHfPlanBody', {
  ...ImportHfBodySchema.properties,
  context: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1e9,
      description:
        'adds the memory that each artifact needs for this many tokens; 0: as many as the model supports, at most 32,768'
    })
  )
})
export type ImportHfPlanBody = Type.Static<typeof ImportHfPlanBodySchema>

/** Body of `POST /v1/inspect/hf` (spec add.60). */
export const InspectHfBodySchema = named('InspectHfBody', {
  repo: ImportHfBodySchema.properties.repo,
  revision: ImportHfBodySchema.properties.revision
})
export type InspectHfBody = Type.Static<typeof InspectHfBodySchema>

/** Body of `POST /v1/import/bt` (spec route.18). */
export const ImportBtBodySchema = named('ImportBtBody', {
  magnet: Type.Optional(text('exactly one of `magnet` and `infohash`')),
  infohash: Type.Optional(text('`btmh:1220<hex>`; exactly one of `magnet` and `infohash`')),
  manifestDigest: text('the pin, `sha256:<hex>`'),
  trackers: Type.Optional(Type.Array(Type.String())),
  webseeds: Type.Optional(listOf(Type.String(), 'http URLs; one at least, here or as `ws=` of the magnet')),
  peers: Type.Optional(PeerListSchema),
  companions: Type.Optional({
    ...CompanionsPinSchema,
    description: 'the second pin of a share: the companions of the artifact (additive)'
  }),
  manifestFromPeers: Type.Optional(
    flag('peers may send the manifest, which must hash to the pin, so no webseed is needed')
  ),
  as: Type.Optional(AsSchema),
  private: Type.Optional(PrivateSchema),
  ...opaqueFields,
  replace: Type.Optional(ReplaceSchema),
  evict: Type.Optional(EvictSchema)
})
export type ImportBtBody = Type.Static<typeof ImportBtBodySchema>

/** Body of `POST /v1/import/catalog` (spec route.22). */
export const ImportCatalogBodySchema = named('ImportCatalogBody', {
  repo: text('`owner/name`, as listed by the provider'),
  quant: Type.Optional(text('which GGUF of the repository')),
  trustCatalog: Type.Optional(flag('required for models whose hub repository is gone')),
  as: Type.Optional(AsSchema),
  peers: Type.Optional(PeerListSchema),
  aux: Type.Optional(AuxSchema),
  ...selectionFields
})
export type ImportCatalogBody = Type.Static<typeof ImportCatalogBodySchema>

/** Body of `POST /v1/import/oci` (spec add.31). */
export const ImportOciBodySchema = named('ImportOciBody', {
  path: Type.Optional(
    text('absolute path of an OCI image layout, a folder or a tar; exactly one of `path` and `image`')
  ),
  manifest: Type.Optional(text('which manifest of a layout, by tag or digest; not needed if there is only one')),
  image: Type.Optional(text('`registry/name:tag` or `registry/name@sha256:<hex>`')),
  plainHttp: Type.Optional(flag('without TLS, as always with registries on this machine')),
  as: AsSchema,
  ...opaqueFields,
  ...selectionFields
})
export type ImportOciBody = Type.Static<typeof ImportOciBodySchema>

/** Body of `POST /v1/gc` (spec add.13). Without fields, removes everything unneeded that is at least a day old. */
export const GcBodySchema = named('GcBody', {
  dryRun: Type.Optional(flag('only count')),
  graceSeconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1e12, description: 'keeps anything younger; 86400 when absent' })
  ),
  beforeOlderThanSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1e12,
      description: 'first removes older tags `before-<date>` of upgrades (additive)'
    })
  ),
  views: Type.Optional(flag('first removes managed views that nobody holds, of artifacts without a name, tag or pin')),
  leftovers: Type.Optional(
    flag('also removes what idle downloads left unfinished, and corrupt blobs that were moved aside (additive)')
  )
})
export type GcBody = Type.Static<typeof GcBodySchema>

/** Body of `POST /v1/evict`. */
export const EvictBodySchema = named('EvictBody', {
  ref: RefSchema,
  force: Type.Optional(flag('even if no other copy is known'))
})
export type EvictBody = Type.Static<typeof EvictBodySchema>

/** Body of `POST /v1/outdated`. */
export const OutdatedBodySchema = named('OutdatedBody', {
  refs: Type.Optional(Type.Array(RefSchema, { maxItems: 10_000, description: 'all models when absent' }))
})
export type OutdatedBody = Type.Static<typeof OutdatedBodySchema>

/** Body of `PUT /v1/private` (spec add.10). */
export const PrivateBodySchema = named('PrivateBody', { ref: RefSchema, private: PrivateSchema })
export type PrivateBody = Type.Static<typeof PrivateBodySchema>

/** Body of `PUT /v1/pin`. */
export const PinBodySchema = named('PinBody', { ref: RefSchema, pinned: flag('true: its bytes are never evicted') })
export type PinBody = Type.Static<typeof PinBodySchema>

/** Body of `POST /v1/hub/account`. */
export const HubAccountBodySchema = named('HubAccountBody', { token: text('at most 4,096 characters') })
export type HubAccountBody = Type.Static<typeof HubAccountBodySchema>

/** Body of `PUT /v1/seed`. */
export const SeedBodySchema = named('SeedBody', { seed: flag('false: announces and shares nothing') })
export type SeedBody = Type.Static<typeof SeedBodySchema>

/** Body of `PUT /v1/seed-local` (spec add.10). */
export const SeedLocalBodySchema = named('SeedLocalBody', {
  seedLocal: flag('false keeps imports from disk private unless they say otherwise')
})
export type SeedLocalBody = Type.Static<typeof SeedLocalBodySchema>

/** Body of `PUT /v1/upload-limit`. */
export const UploadLimitBodySchema = named('UploadLimitBody', {
  bytesPerSecond: count('0 is unlimited')
})
export type UploadLimitBody = Type.Static<typeof UploadLimitBodySchema>

/** Body of `PUT /v1/download-limit` (additive). */
export const DownloadLimitBodySchema = named('DownloadLimitBody', {
  bytesPerSecond: count('from all sources together; 0 is unlimited')
})
export type DownloadLimitBody = Type.Static<typeof DownloadLimitBodySchema>

/** Body of `POST /v1/share` (spec route.30). */
export const ShareBodySchema = named('ShareBody', { ref: RefSchema })
export type ShareBody = Type.Static<typeof ShareBodySchema>

/** Body of `POST /v1/verify` (spec route.23). */
export const VerifyBodySchema = named('VerifyBody', { target: text('canonical reference, digest, or `all`') })
export type VerifyBody = Type.Static<typeof VerifyBodySchema>
