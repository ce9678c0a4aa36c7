import { ClassifyError } from './errors.ts'
import { formatsIn } from './file-formats.ts'
import { licenceAnnotations } from './licence.ts'
import { checkEntryName, isReservedName } from './names.ts'
import { isPickleByName } from './pickles.ts'
import { RAW } from './quant.ts'
import { MAX_LICENCE_BYTES } from './reads.ts'
import { outcomeOf, SPEC_VERSION } from './table.ts'
import type { Facts, FileUse, ListedFile, ManifestEntry, PlannedArtifacts, Recognition, Warning } from './types.ts'

/**
 * A listing whose owner takes every file as it is (spec rec.32): each is an entry of kind `opaque`, and nothing is read of it but
 * licences and the start.
 * @param files sorted by name, with checked names
 */
export function opaqueListing(files: readonly ListedFile[]): Recognition {
  const uses = new Map<string, FileUse>()
  const entries: ManifestEntry[] = []
  const licences: (ListedFile & { readonly detect: boolean })[] = []
  const warnings: Warning[] = []
  for (const { name, sizeBytes } of files) {
    if (isReservedName(name)) {
      uses.set(name, { use: 'skip', reason: 'reserved-name' })
      const message = `${name} was skipped: that name is reserved for the artifact's own documents; rename it at its source`
      warnings.push({ code: 'reserved-name', names: [name], message })
      continue
    }
    checkEntryName(name)
    uses.set(name, { use: 'entry', entry: name })
    entries.push({ kind: 'opaque', name, sizeBytes, content: { from: 'file', name } })
    const outcome = outcomeOf(name)
    if (outcome.is === 'licence' && sizeBytes <= MAX_LICENCE_BYTES)
      licences.push({ name, sizeBytes, detect: outcome.detect })
  }
  const skipped = [...uses].flatMap(([name, use]) => (use.use === 'skip' ? [{ name, reason: use.reason }] : []))
  return { names: 'opaque', entries, uses, skipped, warnings, config: undefined, licences }
}

/** Whether a file goes with any choice among opaque ones, as tokenizers and configurations go with any quant. */
export const goesWithAny = (name: string): boolean =>
  ['tokenizer', 'chat-template', 'config', 'licence'].includes(outcomeOf(name).is)

/** The one artifact of an opaque listing. The texts of licences are files of it. */
export function opaqueArtifact(recognition: Recognition, facts: Facts): PlannedArtifacts {
  const { entries } = recognition
  const { annotations } = licenceAnnotations(recognition, facts.licences)
  const license = annotations['svc.license']
  const [format] = formatsIn(entries.map(({ name }) => name))
  const artifact = {
    quant: RAW,
    entries,
    modelConfig: { quantization: RAW, ...(format !== undefined && { weightsFormat: format.id }) },
    annotations: { 'svc.specVersion': SPEC_VERSION, ...(license !== undefined && { 'svc.license': license }) }
  }
  const pickles = entries
    .map(({ name }) => name)
    .filter((name) => {
      const start = facts.headers.get(name)
      return start?.format === 'opaque' ? start.isPickle : isPickleByName(name)
    })
  return {
    artifacts: [artifact],
    warnings: [...recognition.warnings, ...(pickles.length > 0 ? [pickleWarning(pickles)] : [])]
  }
}

const pickleWarning = (names: readonly string[]): Warning => ({
  code: 'pickle',
  names,
  message: `${some(names)} can run code when loaded: ${names.length > 1 ? 'they are pickles' : 'it is a pickle'}`
})

const some = (names: readonly string[]): string =>
  JSON.stringify(names[0]!.slice(0, 200)) + (names.length > 1 ? ` and ${names.length - 1} more files` : '')

/** @throws ClassifyError `E_NOT_IMPORTABLE`, reason `pickle`, for any file here: pickles need their owner's word (spec rec.33) */
export function refusePickles(names: readonly string[]): void {
  const [name] = names
  if (name === undefined) return
  const are = names.length > 1 ? 'are pickles, which' : 'is a pickle, which'
  throw new ClassifyError(
    'E_NOT_IMPORTABLE',
    `${some(names)} ${are} can run code when loaded; "allowPickle" imports them all the same, and "files" leaves them out`,
    { name, reason: 'pickle', candidates: ['pickle'] }
  )
}
