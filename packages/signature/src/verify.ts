import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { bundleFromJSON } from '@sigstore/bundle'
import { TrustedRoot } from '@sigstore/protobuf-specs'
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify'
import { type Bundle, parseBundle } from './bundle.ts'
import { certificateOfSigner, certificatesOfPem, requireMaySign } from './certificates.ts'
import { signatureTest, signersKey } from './envelope.ts'
import { given, refused } from './errors.ts'
import { parseStatement, type SignedModel } from './statement.ts'

/** Who may have signed; one of them suffices. */
export interface Trust {
  /** Public keys of signers, as PEM: elliptic curve P-256, P-384 or P-521. */
  readonly keys?: readonly string[]
  /** Certificates, as PEM, to one of which the signer's has to lead. */
  readonly certificates?: readonly string[]
  /** Who logged in to sign, exactly; needs `root`. */
  readonly identities?: readonly Identity[]
  /** A Sigstore trust root (`trusted_root.json`), as its text. */
  readonly root?: string
}

/** Who somebody proved to be at an OpenID Connect issuer. */
export interface Identity {
  readonly issuer: string
  /** The certificate's alternative name: an e-mail address or a URI. */
  readonly subject: string
}

/** Who signed. */
export type Signer =
  | {
      readonly kind: 'key' /** SHA-256 of the public key as PEM, in hexadecimal digits. */
      readonly fingerprint: string
    }
  | { readonly kind: 'certificate'; readonly subject: string; readonly fingerprint: string }
  | ({ readonly kind: 'identity' } & Identity)

/** A signature that holds, and what it says. */
export interface VerifiedModel {
  readonly signer: Signer
  readonly model: SignedModel
}

/**
 * Verifies a signature of a model (OpenSSF model signing: a Sigstore bundle around an in-toto statement), without a
 * network. `compareWithFiles` then compares what it says with the files that are here.
 * @param now for certificates that are in no log
 * @throws SignatureError
 */
export function verifySignature(bytes: Uint8Array, trust: Trust, now: Date): VerifiedModel {
  const bundle = parseBundle(bytes)
  const signer = signerOf(bundle, trust, now)
  return { signer, model: parseStatement(bundle.payload) }
}

function signerOf(bundle: Bundle, trust: Trust, now: Date): Signer {
  const { material } = bundle
  if (material.kind === 'key') return keyOf(bundle, material.hint, required(trust.keys, 'a public key'))
  if (material.kind === 'keyless') return identityOf(bundle, material.chain, trust)
  const trusted = required(trust.certificates, 'a certificate').flatMap(certificatesOfPem)
  const certificate = certificateOfSigner(material.chain, trusted, now)
  if (!signatureTest(bundle)(certificate.publicKey))
    throw refused('signature', 'the key of its certificate did not make it, or it was changed')
  const fingerprint = createHash('sha256').update(certificate.raw).digest('hex')
  return { kind: 'certificate', subject: certificate.subject.replaceAll('\n', ', '), fingerprint }
}

function required<T>(given: readonly T[] | undefined, what: string): readonly T[] {
  if (given !== undefined && given.length > 0) return given
  throw refused('untrusted', `it is made with ${what}, and none was given to verify it with`)
}

function keyOf(bundle: Bundle, hint: string | undefined, pems: readonly string[]): Signer {
  const isSignedBy = signatureTest(bundle)
  for (const pem of pems) {
    const key = publicKeyOfPem(pem)
    const fingerprint = fingerprintOf(key)
    if (hint !== undefined && hint.toLowerCase() !== fingerprint) continue
    if (isSignedBy(key)) return { kind: 'key', fingerprint }
  }
  throw refused('key', 'none of the given keys made it, or it was changed')
}

function identityOf({ json }: Bundle, [signer]: readonly Buffer[], { identities, root }: Trust): Signer {
  const wanted = required(identities, 'an identity (issuer and subject)')
  if (root === undefined)
    throw refused('untrusted', 'a login is verified with a trust root (trusted_root.json), and none was given')
  const material = trustMaterialOf(root)
  let found: ReturnType<Verifier['verify']>['identity']
  try {
    found = new Verifier(material).verify(toSignedEntity(bundleFromJSON(json))).identity
  } catch (cause) {
    throw refused('keyless', `it does not hold: ${(cause as Error).message}`, cause)
  }
  requireMaySign(signer!)
  // compared here: the library takes a subject as a regular expression
  const issuer = found?.extensions?.issuer
  const subject = found?.subjectAlternativeName
  if (wanted.some((each) => each.issuer === issuer && each.subject === subject))
    return { kind: 'identity', issuer: issuer!, subject: subject! }
  throw refused('identity', `it was made by ${subject} (${issuer})`)
}

const trustMaterialOf = (root: string): ReturnType<typeof toTrustMaterial> =>
  given(() => toTrustMaterial(TrustedRoot.fromJSON(JSON.parse(root))), 'the trust root cannot be read')

/** Checks that everything in `Trust` can be read. @throws SignatureError `input` */
export function requireReadable({ keys = [], certificates = [], root }: Trust): void {
  for (const pem of keys) publicKeyOfPem(pem)
  for (const pem of certificates) certificatesOfPem(pem)
  if (root !== undefined) trustMaterialOf(root)
}

const publicKeyOfPem = (pem: string): KeyObject => signersKey(() => createPublicKey(pem), 'public key (PEM)')

/** As signatures name a key. */
export const fingerprintOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'pem' }))
    .digest('hex')
