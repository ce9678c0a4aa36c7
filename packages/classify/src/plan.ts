import { compareText, unqualified } from '@svc/ref'
import { isContextLength, isFamily, quantOfConfig } from './config.ts'
import { defined } from './defined.ts'
import { failMissing } from './errors.ts'
import { DEFAULT_FORM } from './forms.ts'
import { licenceAnnotations } from './licence.ts'
import { folderOf } from './names.ts'
import { normalizedName } from './normalize.ts'
import { opaqueArtifact } from './opaque.ts'
import { dtypeQuant, ggufModelName, normalizedQuant, RAW } from './quant.ts'
import { requireImportable } from './recognize.ts'
import { formQuant, isWeights, memberQuants, some } from './selection.ts'
import { shardOf } from './shards.ts'
import { SPEC_VERSION } from './table.ts'
import type {
  ArtifactPlan,
  ConfigFacts,
  Facts,
  HeaderSummary,
  ManifestEntry,
  ModelConfigFacts,
  NamesRead,
  PlannedArtifacts,
  Recognition,
  Warning
} from './types.ts'

/**
 * Derives the quants and plans the artifacts (spec rec.13, rec.19): one per quant, each with all weights of that quant
 * and every shared entry. A repository of adapters alone is one artifact of quant `raw`. The result depends on the
 * upstream bytes alone.
 * @throws ClassifyError `E_NOT_IMPORTABLE` without weights and adapters; `E_MISSING_FACT` when a fact listed by
 *   `requiredReads` was not supplied.
 */
export function planArtifacts(recognition: Recognition, facts: Facts): PlannedArtifacts {
  requireImportable(recognition)
  if (recognition.names === 'opaque') return opaqueArtifact(recognition, facts)
  const config = recognition.config && (facts.config ?? failMissing(recognition.config.name))
  const weights = recognition.entries.filter(isWeights)
  const shared = recognition.entries.filter((entry) => !isWeights(entry))
  const headers = new Map(weights.map((entry) => [entry, facts.headers.get(entry.name) ?? failMissing(entry.name)]))
  const licences = licenceAnnotations(recognition, facts.licences)
  const annotations = { 'svc.specVersion': SPEC_VERSION, ...licences.annotations }

  const byQuant = weightsByQuant(recognition, weights, (entries) =>
    safetensorsQuant(
      config,
      entries.map((entry) => headers.get(entry)!),
      recognition.names
    )
  )
  if (weights.length === 0) byQuant.set(RAW, [])

  const artifacts = [...byQuant]
    .sort(([a], [b]) => compareText(a, b))
    .map(
      ([quant, own]): ArtifactPlan => ({
        quant,
        entries: [...own, ...shared.filter(({ goesWith }) => goesWith?.includes(quant) ?? true)],
        modelConfig: modelConfig(quant, own, headers, config),
        annotations
      })
    )
  return {
    artifacts,
    warnings: [
      ...recognition.warnings,
      ...(config?.warnings ?? []),
      ...[...headers].flatMap(([entry, header]) => headerWarnings(entry.name, header)),
      ...artifacts.flatMap(formatsMeet),
      ...artifacts.flatMap(modelsMeet),
      ...licences.warnings
    ]
  }
}

/** The weights of each artifact: those of a quant, and of safetensors those of each form. */
function weightsByQuant(
  recognition: Recognition,
  weights: readonly ManifestEntry[],
  quantOfSafetensors: (entries: readonly ManifestEntry[]) => string
): Map<string, ManifestEntry[]> {
  const safetensors = weights.filter(({ kind }) => kind === 'weights.safetensors')
  const inForm = (form: string): ManifestEntry[] => safetensors.filter(({ forms }) => forms?.includes(form) ?? true)
  const forms = new Set(safetensors.flatMap(({ forms = [DEFAULT_FORM] }) => forms))
  const quantOf = memberQuants(
    recognition,
    quantOfSafetensors(forms.has(DEFAULT_FORM) ? inForm(DEFAULT_FORM) : safetensors)
  )
  const result = new Map<string, ManifestEntry[]>()
  const add = (quant: string, entries: readonly ManifestEntry[]): void =>
    void result.set(quant, [...(result.get(quant) ?? []), ...entries])
  for (const [quant, own] of Map.groupBy(
    weights.filter(({ kind }) => kind === 'weights.gguf'),
    quantOf
  ))
    add(quant, own)
  for (const form of forms) add(formQuant(form, quantOfSafetensors(inForm(form))), inForm(form))
  // in manifest order where both formats share one
  for (const own of result.values()) own.sort((a, b) => compareText(a.name, b.name))
  return result
}

/**
 * The warnings of {@link planArtifacts} that follow from the names alone, before a byte is read. The quant of safetensors
 * is not known then, nor whether they meet GGUFs.
 */
export function warningsOfNames({ entries, warnings }: Recognition): Warning[] {
  const byQuant = Map.groupBy(
    entries.filter(({ kind }) => kind === 'weights.gguf'),
    ({ quant }) => quant ?? RAW
  )
  return [...warnings, ...[...byQuant].flatMap(([quant, entries]) => modelsMeet({ quant, entries }))]
}

/**
 * The quant of a listing's safetensors, which form one artifact (spec rec.16, rec.17): from the root `config.json`, or
 * else the dtype of most bytes. `headers` are those of all safetensors; they are not used if the config names a quant.
 */
export const safetensorsQuant = (
  config: Pick<ConfigFacts, 'quant' | 'normalizedQuant'> | undefined,
  headers: Iterable<HeaderSummary>,
  names: NamesRead = 'upstream'
): string => quantOfConfig(config, names) ?? dtypeQuant(bytesByDtype(headers))

/** Over all safetensors weights, since they form one artifact. A file without a readable header is ignored. */
function bytesByDtype(headers: Iterable<HeaderSummary>): Map<string, number> {
  const sums = new Map<string, number>()
  for (const header of headers) {
    if (header.format !== 'safetensors') continue
    for (const [dtype, bytes] of header.bytesByDtype) sums.set(dtype, (sums.get(dtype) ?? 0) + bytes)
  }
  return sums
}

/** From `config.json` first; missing facts come from the artifact's GGUF headers, in name order. */
function modelConfig(
  quant: string,
  own: readonly ManifestEntry[],
  headers: ReadonlyMap<ManifestEntry, HeaderSummary>,
  config: ConfigFacts | undefined
): ModelConfigFacts {
  const ggufs = own.map((entry) => headers.get(entry)).filter((header) => header?.format === 'gguf')
  const gguf = own.some(({ kind }) => kind === 'weights.gguf')
  const safetensors = own.some(({ kind }) => kind === 'weights.safetensors')
  return defined({
    family: config?.family ?? ggufs.map((header) => header.architecture).find(isFamily),
    weightsFormat: gguf && safetensors ? 'gguf+safetensors' : gguf ? 'gguf' : safetensors ? 'safetensors' : undefined,
    quantization: unqualified(quant),
    contextLength: config?.contextLength ?? ggufs.map((header) => header.contextLength).find(isContextLength),
    upstream: config?.upstream
  })
}

function formatsMeet({ quant, entries }: ArtifactPlan): Warning[] {
  const weights = entries.filter(isWeights)
  if (new Set(weights.map(({ kind }) => kind)).size < 2) return []
  return [
    {
      code: 'formats-meet',
      names: weights.map(({ name }) => name),
      message: `the artifact ${quant} contains weights in both formats, GGUF and safetensors: probably the same model twice`
    }
  ]
}

/**
 * Warns when two models with the same quant in one folder end up in one artifact (spec add.5): a runtime would load
 * whichever it finds first. It also happens to quants of one model whose names are not spelled as the rule expects.
 */
function modelsMeet({ quant, entries }: Pick<ArtifactPlan, 'quant' | 'entries'>): Warning[] {
  const byFolder = Map.groupBy(
    entries.filter(({ kind }) => kind === 'weights.gguf').map(({ name }) => name),
    folderOf
  )
  return [...byFolder.values()].flatMap((names): Warning[] => {
    const models = Map.groupBy(names, (name) => ggufModelName(normalizedName(name)))
    const quants = new Set(names.map((name) => normalizedQuant(normalizedName(name))))
    if (quants.size > 1)
      return [
        {
          code: 'quants-meet',
          names,
          message:
            `the artifact ${quant} contains ${names.length} files that look like the quants ${some([...quants].sort(compareText), 6)}; ` +
            'an import with normalized names separates them'
        }
      ]
    if (models.size < 2) return []
    const firsts = [...models.values()].map(([first]) => first!)
    return [
      {
        code: 'models-meet',
        names,
        message:
          `the artifact ${quant} contains ${models.size} models: ${some(firsts, 6)}; ` +
          'choose one of them by its file name (--file), and import each under a name of its own (--as)'
      }
    ]
  })
}

/** The warning about a GGUF whose tensors do not lie in it (spec rec.12). */
export const damagedWeights = (name: string, defect: string): Warning => ({
  code: 'damaged-weights',
  names: [name],
  message: `${name} is damaged or truncated, and no runtime should load it: ${defect}`
})

function headerWarnings(name: string, header: HeaderSummary): Warning[] {
  if (header.format === 'unreadable') {
    const looks = header.looksLike === undefined ? 'its format is unknown' : `it looks like ${header.looksLike}`
    return [
      {
        code: 'unreadable-header',
        names: [name],
        message: `${name} is stored, but its header cannot be read (${header.problem}); ${looks}`
      }
    ]
  }
  if (header.format !== 'gguf') return []
  const warnings: Warning[] = []
  if (header.defect !== undefined) warnings.push(damagedWeights(name, header.defect))
  if (header.type !== undefined && header.type !== 'model')
    warnings.push({
      code: 'header-type',
      names: [name],
      message: `${name} is stored as weights, but its header says that it is of type ${JSON.stringify(header.type)}`
    })
  if (header.splitCount !== undefined && header.splitCount > 1) {
    const part = (header.splitNo ?? 0) + 1
    const shard = shardOf(name)
    const named = shard === undefined ? 'nothing about parts' : `part ${shard.part} of ${shard.total}`
    if (shard?.part !== part || shard.total !== header.splitCount)
      warnings.push({
        code: 'split-mismatch',
        names: [name],
        message: `the header of ${name} says that it is part ${part} of ${header.splitCount}, its name says ${named}`
      })
  }
  return warnings
}
