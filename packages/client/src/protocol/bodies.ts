import * as Type from 'typebox'
import { CompanionsPinSchema, PeerListSchema, RefSchema } from './fields.ts'

/**
 * Request bodies (spec http.6, http.7). The daemon ignores and logs unknown fields, so no schema forbids them; the
 * static types omit them. Strings have no pattern, since the daemon's own checks produce messages that name the fix.
 */

const AsSchema = Type.String({ description: '`ns/name`, lower case' })
const PrivateSchema = Type.Boolean({ description: 'not announced, and given to nobody' })
const ReplaceSchema = Type.Boolean({
  description:
    'false: the job fails where a quant of that name is another artifact here, unless it came from the same repository of the hub; true when absent'
})

const EvictSchema = Type.Boolean({
  description: 'where it does not fit, models go that can be had again; else the job fails and names them (additive)'
})

/** Fields that imports from disk, hub, catalog and OCI have in common (spec add.1, add.6, add.10, add.45). */
const selectionFields = {
  names: Type.Optional(
    Type.Union([Type.Literal('upstream'), Type.Literal('normalized')], {
      description: 'how names of `*.gguf` are taken; `upstream` when absent'
    })
  ),
  quants: Type.Optional(Type.Array(Type.String(), { description: 'only these; compared in lower case' })),
  files: Type.Optional(Type.Array(Type.String(), { description: 'globs: only these weights and aux files' })),
  private: Type.Optional(PrivateSchema),
  replace: Type.Optional(ReplaceSchema),
  evict: Type.Optional(EvictSchema)
}

const AuxSchema = Type.Union(
  [Type.Literal('all'), Type.Literal('none'), Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 })],
  {
    description:
      'which projectors and importance matrices come along: precisions (`f16`), `imatrix`, and `one` for one projector a folder; `all` when absent'
  }
)

/** Body of `POST /v1/ensure` (spec route.7). */
export const EnsureBodySchema = Type.Object(
  { ref: RefSchema, evict: Type.Optional(EvictSchema) },
  { title: 'EnsureBody' }
)
/** A value of {@link EnsureBodySchema}. */
export type EnsureBody = Type.Static<typeof EnsureBodySchema>

/** Body of `POST /v1/companions` (spec add.49). */
export const CompanionsBodySchema = Type.Object({ ref: RefSchema }, { title: 'CompanionsBody' })
/** A value of {@link CompanionsBodySchema}. */
export type CompanionsBody = Type.Static<typeof CompanionsBodySchema>

/** Body of `POST /v1/import/local` (spec route.14). */
export const ImportLocalBodySchema = Type.Object(
  {
    paths: Type.Array(Type.String(), { minItems: 1, description: 'absolute paths of files and folders' }),
    as: AsSchema,
    companions: Type.Optional(
      Type.Union([Type.Literal('loaders'), Type.Literal('all')], {
        description:
          'which small files beside the model leave with it: those with names that loaders read (when absent), or all but secrets (additive)'
      })
    ),
    aux: Type.Optional(AuxSchema),
    ...selectionFields
  },
  { title: 'ImportLocalBody' }
)
/** A value of {@link ImportLocalBodySchema}. */
export type ImportLocalBody = Type.Static<typeof ImportLocalBodySchema>

/** Files that are stored under other names, such as in the caches of other tools (spec add.27). */
export const AdoptBodySchema = Type.Object(
  {
    as: AsSchema,
    files: Type.Array(
      Type.Object({
        name: Type.String({ description: 'in the artifact; a path with `/`' }),
        path: Type.String({ description: 'absolute path of the regular file; no component is a link' }),
        sha256: Type.Optional(Type.String({ description: '`sha256:<hex>` that the bytes must have' })),
        gitSha1: Type.Optional(Type.String({ description: "40 hex characters, git's name of the blob" }))
      }),
      { minItems: 1 }
    ),
    hub: Type.Optional(
      Type.Object(
        { repo: Type.String(), revision: Type.String() },
        { description: 'where the files came from; noted when each of them has a digest that was checked' }
      )
    ),
    names: selectionFields.names,
    private: selectionFields.private,
    replace: selectionFields.replace
  },
  { title: 'AdoptBody' }
)
/** A value of {@link AdoptBodySchema}. */
export type AdoptBody = Type.Static<typeof AdoptBodySchema>

/** Body of `POST /v1/import/hf`, and of its plan (spec route.17). */
export const ImportHfBodySchema = Type.Object(
  {
    repo: Type.String({ description: '`org/name` on the hub, or `name` for one without an owner' }),
    revision: Type.Optional(Type.String({ description: 'branch, tag or commit; the default branch when absent' })),
    follows: Type.Optional(
      Type.String({
        description: 'the branch or tag that `revision`, a commit, was found at; it is followed (additive)'
      })
    ),
    keepBefore: Type.Optional(
      Type.Boolean({
        description: 'what the name stands for now gets the tag `before-<date>` if it changes (additive)'
      })
    ),
    as: Type.Optional(AsSchema),
    aux: Type.Optional(AuxSchema),
    ...selectionFields
  },
  { title: 'ImportHfBody' }
)
/** A value of {@link ImportHfBodySchema}. */
export type ImportHfBody = Type.Static<typeof ImportHfBodySchema>

/** Body of `POST /v1/import/hf/plan`. */
export const ImportHfPlanBodySchema = Type.Object(
  {
    ...ImportHfBodySchema.properties,
    context: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1e9,
        description: 'adds what each artifact needs of memory at so many tokens; 0: as the model says, at most 32,768'
      })
    )
  },
  { title: 'ImportHfPlanBody' }
)
/** A value of {@link ImportHfPlanBodySchema}. */
export type ImportHfPlanBody = Type.Static<typeof ImportHfPlanBodySchema>

/** Body of `POST /v1/import/bt` (spec route.18). */
export const ImportBtBodySchema = Type.Object(
  {
    magnet: Type.Optional(Type.String({ description: 'exactly one of `magnet` and `infohash`' })),
    infohash: Type.Optional(Type.String({ description: '`btmh:1220<hex>`; exactly one of `magnet` and `infohash`' })),
    manifestDigest: Type.String({ description: 'the pin, `sha256:<hex>`' }),
    trackers: Type.Optional(Type.Array(Type.String())),
    webseeds: Type.Optional(
      Type.Array(Type.String(), { description: 'http URLs; one at least, here or as `ws=` of the magnet' })
    ),
    peers: Type.Optional(PeerListSchema),
    companions: Type.Optional({
      ...CompanionsPinSchema,
      description: 'the second pin of a share: what lies beside the artifact (additive)'
    }),
    manifestFromPeers: Type.Optional(
      Type.Boolean({ description: 'no webseed is needed: peers may give the manifest, which must hash to the pin' })
    ),
    as: Type.Optional(AsSchema),
    private: Type.Optional(PrivateSchema),
    replace: Type.Optional(ReplaceSchema),
    evict: Type.Optional(EvictSchema)
  },
  { title: 'ImportBtBody' }
)
/** A value of {@link ImportBtBodySchema}. */
export type ImportBtBody = Type.Static<typeof ImportBtBodySchema>

/** Body of `POST /v1/import/catalog` (spec route.22). */
export const ImportCatalogBodySchema = Type.Object(
  {
    repo: Type.String({ description: '`owner/name`, as listed by the provider' }),
    quant: Type.Optional(Type.String({ description: 'which GGUF of the repository' })),
    trustCatalog: Type.Optional(Type.Boolean({ description: 'required for models whose hub repository is gone' })),
    as: Type.Optional(AsSchema),
    peers: Type.Optional(PeerListSchema),
    aux: Type.Optional(AuxSchema),
    ...selectionFields
  },
  { title: 'ImportCatalogBody' }
)
/** A value of {@link ImportCatalogBodySchema}. */
export type ImportCatalogBody = Type.Static<typeof ImportCatalogBodySchema>

/** Body of `POST /v1/import/oci` (spec add.31). */
export const ImportOciBodySchema = Type.Object(
  {
    path: Type.Optional(
      Type.String({
        description: 'absolute path of an OCI image layout, a folder or a tar; exactly one of `path` and `image`'
      })
    ),
    manifest: Type.Optional(
      Type.String({ description: 'which of a layout, by tag or digest; not needed where there is one' })
    ),
    image: Type.Optional(Type.String({ description: '`registry/name:tag` or `registry/name@sha256:<hex>`' })),
    plainHttp: Type.Optional(
      Type.Boolean({ description: 'without TLS; as it is done with registries on this machine' })
    ),
    as: AsSchema,
    ...selectionFields
  },
  { title: 'ImportOciBody' }
)
/** A value of {@link ImportOciBodySchema}. */
export type ImportOciBody = Type.Static<typeof ImportOciBodySchema>

/** Body of `POST /v1/gc` (spec add.13). Without fields, removes everything unneeded that is at least a day old. */
export const GcBodySchema = Type.Object(
  {
    dryRun: Type.Optional(Type.Boolean({ description: 'only count' })),
    graceSeconds: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1e12, description: 'what is younger is kept; 86400 when absent' })
    ),
    beforeOlderThanSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1e12,
        description: 'tags `before-<date>` of upgrades that are older go first (additive)'
      })
    ),
    views: Type.Optional(
      Type.Boolean({ description: 'managed views go first that nobody holds, of artifacts without a name, tag or pin' })
    )
  },
  { title: 'GcBody' }
)
/** A value of {@link GcBodySchema}. */
export type GcBody = Type.Static<typeof GcBodySchema>

/** Body of `POST /v1/evict`. */
export const EvictBodySchema = Type.Object(
  {
    ref: RefSchema,
    force: Type.Optional(Type.Boolean({ description: 'also where nothing else was seen to have the bytes' }))
  },
  { title: 'EvictBody' }
)
/** A value of {@link EvictBodySchema}. */
export type EvictBody = Type.Static<typeof EvictBodySchema>

/** Body of `POST /v1/outdated`. */
export const OutdatedBodySchema = Type.Object(
  { refs: Type.Optional(Type.Array(RefSchema, { maxItems: 10_000, description: 'all models when absent' })) },
  { title: 'OutdatedBody' }
)
/** A value of {@link OutdatedBodySchema}. */
export type OutdatedBody = Type.Static<typeof OutdatedBodySchema>

/** Body of `PUT /v1/private` (spec add.10). */
export const PrivateBodySchema = Type.Object({ ref: RefSchema, private: PrivateSchema }, { title: 'PrivateBody' })
/** A value of {@link PrivateBodySchema}. */
export type PrivateBody = Type.Static<typeof PrivateBodySchema>

/** Body of `PUT /v1/pin`. */
export const PinBodySchema = Type.Object(
  { ref: RefSchema, pinned: Type.Boolean({ description: 'true: its bytes are never evicted' }) },
  { title: 'PinBody' }
)
/** A value of {@link PinBodySchema}. */
export type PinBody = Type.Static<typeof PinBodySchema>

/** Body of `PUT /v1/seed`. */
export const SeedBodySchema = Type.Object(
  { seed: Type.Boolean({ description: 'false: nothing is announced or given to others' }) },
  { title: 'SeedBody' }
)
/** A value of {@link SeedBodySchema}. */
export type SeedBody = Type.Static<typeof SeedBodySchema>

/** Body of `PUT /v1/seed-local` (spec add.10). */
export const SeedLocalBodySchema = Type.Object(
  { seedLocal: Type.Boolean({ description: 'false keeps imports from disk private unless they say otherwise' }) },
  { title: 'SeedLocalBody' }
)
/** A value of {@link SeedLocalBodySchema}. */
export type SeedLocalBody = Type.Static<typeof SeedLocalBodySchema>

/** Body of `POST /v1/share` (spec route.30). */
export const ShareBodySchema = Type.Object({ ref: RefSchema }, { title: 'ShareBody' })
/** A value of {@link ShareBodySchema}. */
export type ShareBody = Type.Static<typeof ShareBodySchema>

/** Body of `POST /v1/verify` (spec route.23). */
export const VerifyBodySchema = Type.Object(
  { target: Type.String({ description: 'canonical reference, digest, or `all`' }) },
  { title: 'VerifyBody' }
)
/** A value of {@link VerifyBodySchema}. */
export type VerifyBody = Type.Static<typeof VerifyBodySchema>
