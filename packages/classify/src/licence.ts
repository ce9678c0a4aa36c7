import { compareText, digestHex, type Sha256Digest } from '@svc/ref'
import { failMissing } from './errors.ts'
import { DICTIONARY, TEXTS } from './licence-texts.ts'
import { type Bigrams, bigramsOf, dice, licenceWords } from './licence-words.ts'
import { sortedByName } from './names.ts'
import { MAX_LICENCE_BYTES } from './reads.ts'
import type { LicenceFact, Recognition, Warning } from './types.ts'

/** A text is identified when it is at least this similar to a known one (spec rec.20) … */
const MIN_SIMILARITY = 0.98
/** … and its similarity exceeds that to any other licence by this much. */
const MIN_LEAD = 0.015
/** Limit of all licence texts of one manifest together, as JSON strings: a manifest has at most 4 MiB. */
export const MAX_TEXTS_BYTES = 1024 * 1024

interface KnownText extends Bigrams {
  readonly id: string
}

let known: readonly KnownText[] | undefined

/** Unpacked at the first use: about 90,000 words. */
function knownTexts(): readonly KnownText[] {
  if (known) return known
  const dictionary = DICTIONARY.split(' ')
  known = TEXTS.map(([id, packed]) => {
    const words: string[] = []
    let index = 0
    let shift = 0
    for (const char of atob(packed)) {
      const byte = char.charCodeAt(0)
      index |= (byte & 0x7f) << shift
      shift += 7
      if (byte > 0x7f) continue
      words.push(dictionary[index]!)
      index = shift = 0
    }
    return { id, ...bigramsOf(words) }
  })
  return known
}

/**
 * The SPDX id of a licence text; undefined when it is not one of the curated ones, or not clearly: Dice similarity of
 * word pairs ≥ 0.98 with a lead ≥ 0.015 over the next licence (spec rec.20).
 */
export function detectLicence(text: string): string | undefined {
  const words = bigramsOf(licenceWords(text))
  let best = { id: '', score: 0 }
  let second = 0
  for (const candidate of knownTexts()) {
    // an upper bound from the lengths alone: most candidates need no comparison.
    if ((2 * Math.min(words.total, candidate.total)) / (words.total + candidate.total) < MIN_SIMILARITY - MIN_LEAD)
      continue
    const score = dice(words, candidate)
    if (candidate.id === best.id) best = { id: best.id, score: Math.max(best.score, score) }
    else if (score > best.score) [best, second] = [{ id: candidate.id, score }, best.score]
    else second = Math.max(second, score)
  }
  return best.score >= MIN_SIMILARITY && best.score - second >= MIN_LEAD ? best.id : undefined
}

/** The id of an unknown text, which identifies its exact bytes (SPDX, LicenseRef). */
export const licenceRef = (digest: Sha256Digest): string => `LicenseRef-sha256-${digestHex(digest).slice(0, 12)}`

export interface LicenceAnnotations {
  readonly annotations: Readonly<Record<string, string>>
  readonly warnings: readonly Warning[]
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The annotations `svc.license` (an SPDX expression: sorted ids joined with ` AND `) and `svc.license.file.<path>` (the
 * texts).
 *
 * A text that is larger than 256 KiB or not UTF-8 gets a `LicenseRef` and is not kept. Texts beyond a total of {@link MAX_TEXTS_BYTES},
 * in path order, are identified but not kept. Both cause a warning. Empty files are ignored.
 * @throws ClassifyError `E_MISSING_FACT` when a licence file of the recognition was not supplied.
 */
export function licenceAnnotations(recognition: Recognition, facts: readonly LicenceFact[]): LicenceAnnotations {
  const byName = new Map(facts.map((fact) => [fact.name, fact]))
  const warnings: Warning[] = []
  const ids = new Set<string>()
  const texts: [string, string][] = []
  let budget = MAX_TEXTS_BYTES
  for (const { name, sizeBytes, detect } of sortedByName(recognition.licences)) {
    const fact = byName.get(name)
    if (!fact || (!fact.bytes && sizeBytes <= MAX_LICENCE_BYTES)) failMissing(name)
    if (sizeBytes === 0) continue
    const text = fact.bytes && sizeBytes <= MAX_LICENCE_BYTES ? tryDecode(fact.bytes) : undefined
    if (detect) ids.add((text !== undefined && detectLicence(text)) || licenceRef(fact.digest))
    if (text === undefined) {
      const why = sizeBytes <= MAX_LICENCE_BYTES ? 'is not UTF-8 text' : `has ${sizeBytes} bytes`
      warnings.push({
        code: 'licence-unreadable',
        names: [name],
        message: `${name} ${why}: its checksum is part of the artifact, its text is not`
      })
      continue
    }
    budget -= encoder.encode(JSON.stringify(text)).length
    if (budget >= 0) texts.push([`svc.license.file.${name}`, text])
    else
      warnings.push({
        code: 'licence-not-kept',
        names: [name],
        message: `the licence texts have more than ${MAX_TEXTS_BYTES} bytes in total: the text of ${name} is not part of the artifact`
      })
  }
  const expression = [...ids].sort(compareText).join(' AND ')
  return {
    annotations: Object.fromEntries([...(expression ? [['svc.license', expression] as const] : []), ...texts]),
    warnings
  }
}

function tryDecode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}
