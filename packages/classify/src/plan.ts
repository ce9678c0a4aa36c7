import { isContextLength, isFamily } from './config.ts'
import { ClassifyError } from './errors.ts'
import { licenceAnnotations } from './licence.ts'
import { compareNames } from './order.ts'
import { dtypeQuant, RAW } from './quant.ts'
import { requireImportable } from './recognise.ts'
import { SPEC_VERSION } from './table.ts'
import type {
  ArtifactPlan,
  ConfigFacts,
  Entry,
  Facts,
  HeaderSummary,
  ImportPlan,
  ModelConfigFacts,
  Recognition,
  Warning
} from './types.ts'

const isWeights = ({ kind }: Entry): boolean => kind === 'weights.gguf' || kind === 'weights.safetensors'

/**
 * Derives the quants and plans the artifacts (spec rec.13, rec.19): one per quant, each with all weights of that
 * quant and every shared entry. A repository of adapters alone is one artifact of quant `raw`. A function of the
 * upstream bytes alone.
 * @throws ClassifyError `E_NOT_IMPORTABLE` without weights and adapters; `E_MISSING_FACT` when something that
 *   `requiredReads` names was not supplied.
 */
export function planArtifacts(recognition: Recognition, facts: Facts): ImportPlan {
  requireImportable(recognition)
  const config = recognition.config && (facts.config ?? raise(missing(recognition.config.name)))
  const weights = recognition.entries.filter(isWeights)
  const shared = recognition.entries.filter((entry) => !isWeights(entry))
  const headers = new Map(weights.map((entry) => [entry, facts.headers.get(entry.name) ?? raise(missing(entry.name))]))
  const licences = licenceAnnotations(recognition, facts.licences)
  const annotations = { 'svc.specVersion': SPEC_VERSION, ...licences.annotations }

  const quantOfSafetensors = config?.quant ?? dtypeQuant(bytesByDtype(headers))
  const byQuant = new Map<string, Entry[]>()
  for (const entry of weights) {
    const quant = entry.quant ?? quantOfSafetensors
    const own = byQuant.get(quant)
    if (own) own.push(entry)
    else byQuant.set(quant, [entry])
  }
  if (weights.length === 0) byQuant.set(RAW, [])

  const artifacts = [...byQuant]
    .sort(([a], [b]) => compareNames(a, b))
    .map(
      ([quant, own]): ArtifactPlan => ({
        quant,
        entries: [...own, ...shared],
        modelConfig: modelConfig(quant, own, headers, config),
        annotations
      })
    )
  return {
    artifacts,
    warnings: [
      ...recognition.warnings,
      ...(config?.warnings ?? []),
      ...[...headers].flatMap(([entry, header]) => headerWarnings(entry, header)),
      ...artifacts.flatMap(formatsMeet),
      ...licences.warnings
    ]
  }
}

const raise = (error: Error): never => {
  throw error
}
const missing = (name: string): ClassifyError =>
  new ClassifyError('E_MISSING_FACT', `${name} was not read; requiredReads lists what is needed`, { name })

/** Over all safetensors weights: they are one artifact. A file without a readable header counts for nothing. */
function bytesByDtype(headers: ReadonlyMap<Entry, HeaderSummary>): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [entry, header] of headers) {
    if (entry.kind !== 'weights.safetensors' || header.format !== 'safetensors') continue
    for (const [dtype, bytes] of header.bytesByDtype) sums.set(dtype, (sums.get(dtype) ?? 0) + bytes)
  }
  return sums
}

/** `config.json` first; what it leaves open comes from the artifact's GGUF headers, in name order. */
function modelConfig(
  quant: string,
  own: readonly Entry[],
  headers: ReadonlyMap<Entry, HeaderSummary>,
  config: ConfigFacts | undefined
): ModelConfigFacts {
  const ggufs = own.map((entry) => headers.get(entry)).filter((header) => header?.format === 'gguf')
  const family = config?.family ?? ggufs.map((header) => header.architecture).find(isFamily)
  const contextLength = config?.contextLength ?? ggufs.map((header) => header.contextLength).find(isContextLength)
  const gguf = own.some(({ kind }) => kind === 'weights.gguf')
  const safetensors = own.some(({ kind }) => kind === 'weights.safetensors')
  const weightsFormat =
    gguf && safetensors ? 'gguf+safetensors' : gguf ? 'gguf' : safetensors ? 'safetensors' : undefined
  return {
    ...(family === undefined ? {} : { family }),
    ...(weightsFormat === undefined ? {} : { weightsFormat }),
    quantization: quant,
    ...(contextLength === undefined ? {} : { contextLength }),
    ...(config?.upstream === undefined ? {} : { upstream: config.upstream })
  }
}

const formatsMeet = ({ quant, entries }: ArtifactPlan): Warning[] => {
  const weights = entries.filter(isWeights)
  if (new Set(weights.map(({ kind }) => kind)).size < 2) return []
  return [
    {
      code: 'formats-meet',
      names: weights.map(({ name }) => name),
      message: `the artifact ${quant} holds weights in both formats, GGUF and safetensors: probably the same model twice`
    }
  ]
}

function headerWarnings(entry: Entry, header: HeaderSummary): Warning[] {
  const { name } = entry
  if (header.format === 'unreadable') {
    const looks =
      header.looksLike === undefined ? 'it looks like no file format known here' : `it looks like ${header.looksLike}`
    return [
      {
        code: 'unreadable-header',
        names: [name],
        message: `${name} is stored, but its header cannot be read (${header.problem}); ${looks}`
      }
    ]
  }
  if (header.format === 'safetensors') return []
  const warnings: Warning[] = []
  if (header.type !== undefined && header.type !== 'model')
    warnings.push({
      code: 'header-type',
      names: [name],
      message: `${name} is stored as weights, but its header says that it is of type ${JSON.stringify(header.type)}`
    })
  if (header.splitCount !== undefined && header.splitCount > 1) {
    const part = (header.splitNo ?? 0) + 1
    const total = entry.group === undefined ? undefined : Number(/\*(\d+)\.[^*]*$/.exec(entry.group)![1])
    const named = entry.part === undefined ? 'nothing of parts' : `part ${entry.part} of ${total}`
    if (entry.part !== part || total !== header.splitCount)
      warnings.push({
        code: 'split-mismatch',
        names: [name],
        message: `the header of ${name} says that it is part ${part} of ${header.splitCount}, its name says ${named}`
      })
  }
  return warnings
}
