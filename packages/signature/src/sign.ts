import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { BUNDLE_TYPE, PAYLOAD_TYPE } from './bundle.ts'
import { certificatesOfPem } from './certificates.ts'
import { hashOfKey, signedBytes, signersKey } from './envelope.ts'
import { SignatureError } from './errors.ts'
import { statementOf } from './statement.ts'
import { fingerprintOf } from './verify.ts'

/** A model that is to be signed. */
export interface ModelToSign {
  /** For people. */
  readonly name: string
  /** Paths relative to its folder; SHA-256 in hexadecimal digits. */
  readonly files: readonly { readonly path: string; readonly sha256: string }[]
  /** Paths that are left out, each with all below it. */
  readonly ignored: readonly string[]
}

/** The signer. */
export interface SigningKey {
  /** Private key, as PEM: elliptic curve P-256, P-384 or P-521. */
  readonly key: string
  /** The certificate of the key, and those that it leads to, as PEM; without them the signature names the key only. */
  readonly certificates?: string
}

/** Signs a model. @returns the bundle, as JSON @throws SignatureError `input` */
export function signModel({ name, files, ignored }: ModelToSign, { key: pem, certificates }: SigningKey): Uint8Array {
  const key = signersKey(() => createPrivateKey(pem), 'private key (PEM, without a password)')
  const payload = Buffer.from(statementOf(name, files, ignored))
  const signature = sign(hashOfKey(key)!, signedBytes(payload), key)
  const bundle = {
    mediaType: BUNDLE_TYPE,
    verificationMaterial: { ...materialOf(createPublicKey(key), certificates), tlogEntries: [] },
    dsseEnvelope: {
      payload: payload.toString('base64'),
      payloadType: PAYLOAD_TYPE,
      signatures: [{ sig: signature.toString('base64'), keyid: '' }]
    }
  }
  return new TextEncoder().encode(JSON.stringify(bundle))
}

function materialOf(key: KeyObject, pem: string | undefined): object {
  if (pem === undefined) return { publicKey: { hint: fingerprintOf(key) } }
  const certificates = certificatesOfPem(pem)
  if (!certificates[0]!.publicKey.equals(key))
    throw new SignatureError('E_INVALID', 'input', 'the first certificate does not belong to the key')
  return {
    x509CertificateChain: { certificates: certificates.map(({ raw }) => ({ rawBytes: raw.toString('base64') })) }
  }
}
