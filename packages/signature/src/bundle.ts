import { malformed } from './errors.ts'
import { type JsonRecord, parsedJson, record } from './json.ts'

/** A bundle lists a hundred bytes or so for each file of a model. */
const MAX_BUNDLE_BYTES = 8 << 20
const MAX_CERTIFICATES = 10
const BUNDLE = /^application\/vnd\.dev\.sigstore\.bundle(?:\.v0\.\d\+json|\+json;version=0\.\d)$/
export const BUNDLE_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json'
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json'

/** What vouches for the signature. */
type Material =
  | {
      readonly kind: 'key' /** SHA-256 of the public key as PEM, in hexadecimal digits; older signers give none. */
      readonly hint: string | undefined
    }
  | { readonly kind: 'certificates' /** DER, the signer's first. */; readonly chain: readonly Buffer[] }
  | { readonly kind: 'keyless' }

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

function materialOf({ publicKey, certificate, x509CertificateChain, tlogEntries }: JsonRecord): Material {
  if (publicKey !== undefined) {
    const { hint } = fields(publicKey)
    if (hint !== undefined && hint !== null && typeof hint !== 'string')
      throw malformed('the hint of its key is not a string')
    return { kind: 'key', hint: hint || undefined }
  }
  const isLogged = Array.isArray(tlogEntries) && tlogEntries.length > 0
  if (isLogged || certificate !== undefined) return { kind: 'keyless' }
  const { certificates } = fields(x509CertificateChain)
  if (!Array.isArray(certificates) || certificates.length === 0 || certificates.length > MAX_CERTIFICATES)
    throw malformed(`it does not have 1 to ${MAX_CERTIFICATES} certificates`)
  return { kind: 'certificates', chain: certificates.map((each) => fromBase64(fields(each).rawBytes)) }
}

const fields = (value: unknown): JsonRecord => record(value, 'a part of the bundle')

function fromBase64(value: unknown): Buffer {
  if (typeof value !== 'string' || value === '' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(value))
    throw malformed('a part of the bundle is not Base64')
  return Buffer.from(value, 'base64')
}
