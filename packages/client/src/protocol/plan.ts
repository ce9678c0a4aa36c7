import * as Type from 'typebox'
import { bytes, count, flag, listOf, named, text } from './schema.ts'

/**
 * What an import would do with one upstream file: `store` fetches and stores it (or packs it into a stored tar),
 * `annotate` includes it in the documents (licence, root config), `present` needs no fetch, `skip` ignores it.
 */
export const PlanFileSchema = named('PlanFile', {
  name: Type.String(),
  size: bytes(),
  action: Type.Enum(['store', 'annotate', 'present', 'skip']),
  kind: Type.Optional(text('kind of the entry that it becomes or joins')),
  quant: Type.Optional(text('on weights')),
  reason: Type.Optional(text('on `skip`')),
  companion: Type.Optional(flag('true if it is kept as a companion, in no manifest (additive)')),
  upstream: Type.Optional(text('its name on the hub, if it is imported under another one'))
})
export type PlanFile = Type.Static<typeof PlanFileSchema>

/** An artifact that an import would make. */
export const PlanArtifactSchema = named('PlanArtifact', {
  quant: Type.String(),
  upstream: Type.Optional(text('the first of its weights on the hub, if that name does not tell the quant (additive)')),
  files: count('entries, including those that it shares with other artifacts'),
  bytes: bytes(),
  bytesPresent: count('of these, bytes that the store has'),
  weightsBytes: Type.Optional(bytes('of weights, projectors and draft heads, if `context` was given'))
})
export type PlanArtifact = Type.Static<typeof PlanArtifactSchema>

/** `POST /v1/import/hf/plan` (additive): what an import would do, without fetching weights. */
export const ImportPlanSchema = named('ImportPlan', {
  repo: Type.String(),
  commit: text('40 hex'),
  as: text('`ns/name` that it would have'),
  files: Type.Array(PlanFileSchema),
  totals: Type.Object({
    files: count(),
    bytes: bytes(),
    fetchFiles: count(),
    fetchBytes: bytes(),
    storeFiles: count(),
    storeBytes: bytes(),
    skipFiles: count(),
    skipBytes: bytes()
  }),
  quants: Type.Array(Type.String()),
  artifacts: listOf(PlanArtifactSchema, 'one per quant, in the same order'),
  license: Type.Optional(text('SPDX expression of the texts; without any, what the hub names')),
  gated: Type.Optional(flag('true if the hub asks for consent')),
  private: Type.Optional(flag('true if the hub shows it only to some')),
  memory: Type.Optional(
    Type.Union(
      [
        named('MemoryNeed', { contextTokens: count(), cacheBytes: bytes(), computeBytes: bytes() }),
        named('MemoryUnknown', { unknown: text('why it is unknown') })
      ],
      { description: 'if `context` was given: an estimate of what every artifact needs besides its weights' }
    )
  ),
  warnings: Type.Array(Type.String())
})
export type ImportPlan = Type.Static<typeof ImportPlanSchema>

/** `POST /v1/inspect/hf` (additive): what would run code in a repository, and what is malformed. */
export const InspectionSchema = named('Inspection', {
  commit: text('40 hex'),
  findings: listOf(
    named('Finding', {
      file: Type.String(),
      key: Type.Optional(text('of a configuration or a header, with those above it')),
      is: Type.Enum(['runs-code', 'malformed']),
      what: text('for people')
    }),
    'by file'
  ),
  unread: listOf(Type.String(), 'files whose content was not read')
})
export type Inspection = Type.Static<typeof InspectionSchema>

/** `POST /v1/adopt/plan` (additive): what the same body would make. */
export const AdoptPlanSchema = named('AdoptPlan', { quants: Type.Array(Type.String()) })
export type AdoptPlan = Type.Static<typeof AdoptPlanSchema>

/** A model listed in the community catalog. Everything here comes from the provider, unverified. */
export const CatalogEntrySchema = named('CatalogEntry', {
  repo: text('`owner/name`, as listed'),
  name: text('file or torrent name'),
  quant: Type.Optional(Type.String()),
  sizeLabel: text('as the provider prints it'),
  seeds: count(),
  infohash: text('`btih:<40 hex>`')
})
export type CatalogEntry = Type.Static<typeof CatalogEntrySchema>

/** `GET /v1/catalog/search` (additive). */
export const CatalogSearchSchema = named('CatalogSearch', { entries: Type.Array(CatalogEntrySchema) })
export type CatalogSearch = Type.Static<typeof CatalogSearchSchema>
