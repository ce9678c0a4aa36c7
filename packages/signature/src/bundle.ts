import { malformed } from './errors.ts'
import { type JsonRecord, parsedJson, record } from './json.ts'

/** A bundle lists a hundred bytes or so for each file of a model. */
const MAX_BUNDLE_BYTES = 8 << 20
const MAX_CERTIFICATES = 10
/** Signers log once and ask one clock; whoever verifies compares each entry with all others. */
const MAX_LOG_ENTRIES = 10
const MAX_TIMESTAMPS = 10
/** Of a path in a log of 2^64 entries. */
const MAX_PROOF_HASHES = 64
const BUNDLE = /^application\/vnd\.dev\.sigstore\.bundle(?:\.v0\.\d\+json|\+json;version=0\.\d)$/
export const BUNDLE_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json'
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json'

/** What vouches for the signature. */
type Material =
  | {
      readonly kind: 'key' /** SHA-256 of the public key as PEM, in hexadecimal digits; older signers give none. */
      readonly hint: string | undefined
    }
  | { readonly kind: 'certificates' | 'keyless' /** DER, the signer's first. */; readonly chain: readonly Buffer[] }

/** A Sigstore bundle around a DSSE envelope. Nothing of it is verified. */
export interface Bundle {
  readonly json: Readonly<Record<string, unknown>>
  readonly material: Material
  readonly payload: Buffer
  readonly signature: Buffer
}

/** @throws SignatureError `malformed` */
export function parseBundle(bytes: Uint8Array): Bundle {
  if (bytes.length > MAX_BUNDLE_BYTES) throw malformed(`it has more than ${MAX_BUNDLE_BYTES} bytes`)
  const json = fields(parsedJson(bytes, 'it'))
  if (typeof json.mediaType !== 'string' || !BUNDLE.test(json.mediaType)) throw malformed('it is not a Sigstore bundle')
  if (isSet(json.messageSignature)) throw malformed('it has another kind of content')
  const { payload, payloadType, signatures } = fields(json.dsseEnvelope)
  if (payloadType !== PAYLOAD_TYPE) throw malformed('its content is not an in-toto statement')
  if (!Array.isArray(signatures) || signatures.length !== 1) throw malformed('it does not have one signature')
  return {
    json,
    material: materialOf(fields(json.verificationMaterial)),
    payload: fromBase64(payload),
    signature: fromBase64(fields(signatures[0]).sig)
  }
}

function materialOf(material: JsonRecord): Material {
  const { publicKey, certificate, x509CertificateChain } = material
  if ([publicKey, certificate, x509CertificateChain].filter(isSet).length !== 1)
    throw malformed('it does not have one kind of material to verify it with')
  const isLogged = listed(material.tlogEntries, MAX_LOG_ENTRIES, 'log entries').map(requireShortProof).length > 0
  const timestamps = isSet(material.timestampVerificationData) ? fields(material.timestampVerificationData) : {}
  listed(timestamps.rfc3161Timestamps, MAX_TIMESTAMPS, 'timestamps')
  if (isSet(publicKey)) {
    const { hint } = fields(publicKey)
    if (isSet(hint) && typeof hint !== 'string') throw malformed('the hint of its key is not a string')
    return { kind: 'key', hint: (hint as string | null) || undefined }
  }
  const chain = isSet(certificate)
    ? [certificate]
    : listed(fields(x509CertificateChain).certificates, MAX_CERTIFICATES, 'certificates')
  if (chain.length === 0) throw malformed('it has no certificate')
  const ders = chain.map((each) => fromBase64(fields(each).rawBytes))
  return { kind: isLogged || isSet(certificate) ? 'keyless' : 'certificates', chain: ders }
}

function requireShortProof(entry: unknown): void {
  const { inclusionProof } = fields(entry)
  if (isSet(inclusionProof)) listed(fields(inclusionProof).hashes, MAX_PROOF_HASHES, 'hashes in a proof')
}

/** JSON of protocol buffers has `null` for an absent field, too. */
const isSet = (value: unknown): boolean => value !== undefined && value !== null

function listed(value: unknown, most: number, what: string): readonly unknown[] {
  const list = isSet(value) ? value : []
  if (!Array.isArray(list) || list.length > most) throw malformed(`it does not have at most ${most} ${what}`)
  return list
}

const fields = (value: unknown): JsonRecord => record(value, 'a part of the bundle')

function fromBase64(value: unknown): Buffer {
  if (typeof value !== 'string' || value === '' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(value))
    throw malformed('a part of the bundle is not Base64')
  return Buffer.from(value, 'base64')
}
