import * as Type from 'typebox'
import { BytesSchema, CountSchema } from './fields.ts'

/**
 * What an import would do with one upstream file: `store` fetches and stores it (or packs it into a stored tar),
 * `annotate` includes it in the documents (licence, root config), `present` needs no fetch, `skip` ignores it.
 */
export const PlanFileSchema = Type.Object(
  {
    name: Type.String(),
    size: BytesSchema,
    action: Type.Union([
      Type.Literal('store'),
      Type.Literal('annotate'),
      Type.Literal('present'),
      Type.Literal('skip')
    ]),
    kind: Type.Optional(Type.String({ description: 'kind of the entry that it becomes or joins' })),
    quant: Type.Optional(Type.String({ description: 'on weights' })),
    reason: Type.Optional(Type.String({ description: 'on `skip`' })),
    companion: Type.Optional(
      Type.Boolean({
        description: 'true where it is kept beside the artifacts, although no manifest has it (additive)'
      })
    ),
    upstream: Type.Optional(Type.String({ description: 'its name on the hub, where it is imported under another one' }))
  },
  { title: 'PlanFile' }
)
/** A value of {@link PlanFileSchema}. */
export type PlanFile = Type.Static<typeof PlanFileSchema>

/** An artifact that an import would make. */
export const PlanArtifactSchema = Type.Object(
  {
    quant: Type.String(),
    files: Type.Integer({ minimum: 0, description: 'entries, those that it shares with other artifacts included' }),
    bytes: BytesSchema,
    bytesPresent: Type.Integer({ minimum: 0, description: 'of these, bytes that the store has' }),
    weightsBytes: Type.Optional({
      ...BytesSchema,
      description: 'of weights and projectors, where `memory` was asked for'
    })
  },
  { title: 'PlanArtifact' }
)
/** A value of {@link PlanArtifactSchema}. */
export type PlanArtifact = Type.Static<typeof PlanArtifactSchema>

/** `POST /v1/import/hf/plan` (additive): what an import would do, without fetching weights. */
export const ImportPlanSchema = Type.Object(
  {
    repo: Type.String(),
    commit: Type.String({ description: '40 hex' }),
    as: Type.String({ description: '`ns/name` that it would have' }),
    files: Type.Array(PlanFileSchema),
    totals: Type.Object({
      files: CountSchema,
      bytes: BytesSchema,
      fetchFiles: CountSchema,
      fetchBytes: BytesSchema,
      storeFiles: CountSchema,
      storeBytes: BytesSchema,
      skipFiles: CountSchema,
      skipBytes: BytesSchema
    }),
    quants: Type.Array(Type.String()),
    artifacts: Type.Array(PlanArtifactSchema, { description: 'one a quant, in the same order' }),
    license: Type.Optional(Type.String({ description: 'SPDX expression' })),
    gated: Type.Optional(Type.Boolean({ description: 'true where the hub asks for consent' })),
    private: Type.Optional(Type.Boolean({ description: 'true where the hub shows it to some only' })),
    memory: Type.Optional(
      Type.Union(
        [
          Type.Object(
            { contextTokens: CountSchema, cacheBytes: BytesSchema, computeBytes: BytesSchema },
            { title: 'MemoryNeed' }
          ),
          Type.Object({ unknown: Type.String({ description: 'why nobody can tell' }) }, { title: 'MemoryUnknown' })
        ],
        { description: 'where `context` was given: what every artifact needs beside its weights, about' }
      )
    ),
    warnings: Type.Array(Type.String())
  },
  { title: 'ImportPlan' }
)
/** A value of {@link ImportPlanSchema}. */
export type ImportPlan = Type.Static<typeof ImportPlanSchema>

/** `POST /v1/adopt/plan` (additive): what the same body would make. */
export const AdoptPlanSchema = Type.Object({ quants: Type.Array(Type.String()) }, { title: 'AdoptPlan' })
/** A value of {@link AdoptPlanSchema}. */
export type AdoptPlan = Type.Static<typeof AdoptPlanSchema>

/** A model listed in the community catalog. Everything here comes from the provider, unverified. */
export const CatalogEntrySchema = Type.Object(
  {
    repo: Type.String({ description: '`owner/name`, as listed' }),
    name: Type.String({ description: 'file or torrent name' }),
    quant: Type.Optional(Type.String()),
    sizeLabel: Type.String({ description: 'as the provider prints it' }),
    seeds: CountSchema,
    infohash: Type.String({ description: '`btih:<40 hex>`' })
  },
  { title: 'CatalogEntry' }
)
/** A value of {@link CatalogEntrySchema}. */
export type CatalogEntry = Type.Static<typeof CatalogEntrySchema>

/** `GET /v1/catalog/search` (additive). */
export const CatalogSearchSchema = Type.Object({ entries: Type.Array(CatalogEntrySchema) }, { title: 'CatalogSearch' })
/** A value of {@link CatalogSearchSchema}. */
export type CatalogSearch = Type.Static<typeof CatalogSearchSchema>
