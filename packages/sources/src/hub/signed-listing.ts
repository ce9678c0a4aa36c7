import type { HubFile, HubListing } from '@svc/hub'
import { type Library, MAX_SIGNATURE_BYTES, SIGNATURE, type SignedListing, someOf } from '@svc/library/parts'
import { COMPANION_BOUNDS } from '@svc/manifest'
import type { StrangerListing } from './listing-task.ts'

/** A listing for strangers. */
type StrangersFiles = Pick<HubListing, 'repoId' | 'files'> & Pick<StrangerListing, 'leftOut' | 'more'>

/**
 * What a listing's signature covers, where a rule requires one; undefined without such a rule.
 * @param asked the repository in the request @throws LibraryError if an import of it would certainly be refused
 */
export async function signedListing(
  asked: string,
  listed: StrangersFiles,
  { trust, clock }: Pick<Library, 'trust' | 'clock'>,
  read: (file: HubFile) => Promise<Uint8Array>
): Promise<SignedListing | undefined> {
  const rule = trust.ruleFor({ typed: [asked], claimed: [listed.repoId] })
  if (rule?.mode !== 'require') return undefined
  const file = listed.files.find(({ path }) => path === SIGNATURE)
  if (file === undefined || file.sizeBytes > MAX_SIGNATURE_BYTES) throw trust.refusal(rule)
  const signed = await trust.signed(rule, await read(file), clock)
  const complaint = complaintOf(signed, listed)
  if (complaint !== undefined) throw trust.refusal(rule, complaint)
  return signed
}

/** Unknown of a small file before it is read. */
export const mayBeSigned = (signed: SignedListing, { path, sha256 }: Pick<HubFile, 'path' | 'sha256'>): boolean =>
  sha256 === undefined ? signed.names(path) : signed.covers(path, sha256)

/** The reason why an import of a listing would certainly be refused. */
function complaintOf(signed: SignedListing, { files, leftOut, more }: StrangersFiles): string | undefined {
  const wrong = files.find((file) => isBrought(file) && !mayBeSigned(signed, file))
  if (wrong !== undefined) return `changed, or not signed: ${someOf([wrong.path])}`
  const listed = new Set([...files.map(({ path }) => path), ...leftOut.map(({ name }) => name)])
  const missing = more > 0 ? [] : [...signed.paths].filter((path) => !listed.has(path))
  return missing.length === 0 ? undefined : `missing: ${someOf(missing)}`
}

const isBrought = ({ path, sizeBytes }: HubFile): boolean =>
  sizeBytes <= COMPANION_BOUNDS.fileBytes || /\.(?:gguf|safetensors)$/.test(path)
