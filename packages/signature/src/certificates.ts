import { X509Certificate } from 'node:crypto'
import { X509Certificate as Parsed } from '@sigstore/core'
import { given, refused as refusedFor, SignatureError } from './errors.ts'

const CODE_SIGNING = '1.3.6.1.5.5.7.3.3'
/** Key usage, basic constraints, names, key identifiers, extended key usage: those that are checked, or need no check. */
const UNDERSTOOD = new Set(['2.5.29.14', '2.5.29.15', '2.5.29.17', '2.5.29.19', '2.5.29.35', '2.5.29.37'])
const MAX_DEPTH = 10

const refused = (what: string, cause?: unknown): SignatureError => refusedFor('certificate', what, cause)

/**
 * The signer's certificate, if it may sign, a chain leads from it to one of `trusted`, and every certificate of the chain
 * is valid at `now`. Such a signature proves no time: once its certificate has expired, it no longer holds.
 * @throws SignatureError `certificate`
 */
export function certificateOfSigner(
  chain: readonly Buffer[],
  trusted: readonly X509Certificate[],
  now: Date
): X509Certificate {
  const [signer, ...others] = chain.map((der) => parsed(der))
  requireSigns(signer!)
  const path = [signer!]
  for (let at = signer!; !trusted.some(({ fingerprint256 }) => fingerprint256 === at.fingerprint256); ) {
    const issuer = [...trusted, ...others].find(
      (each) =>
        !path.includes(each) && mayIssue(each, path.length - 1) && at.checkIssued(each) && at.verify(each.publicKey)
    )
    if (issuer === undefined || path.length > MAX_DEPTH) throw refused('its certificates do not lead to a trusted one')
    path.push(issuer)
    at = issuer
  }
  for (const each of path) {
    const name = each.subject.replaceAll('\n', ', ')
    if (now < each.validFromDate || now > each.validToDate)
      throw refused(`the certificate of ${name} is valid from ${each.validFrom} to ${each.validTo}`)
    const unknown = Parsed.parse(each.raw).extensions.find((extension) => isUnknown(extension))
    if (unknown !== undefined)
      throw refused(`the certificate of ${name} has a critical extension that svc does not understand`)
  }
  return signer!
}

type Extension = Parsed['extensions'][number]

function isUnknown({ subs }: Extension): boolean {
  // identifier, whether it is critical (false if absent), value
  return subs.length > 2 && subs[1]!.toBoolean() && !UNDERSTOOD.has(subs[0]!.toOID())
}

/** @param below how many issuers' certificates the path has below it */
function mayIssue(certificate: X509Certificate, below: number): boolean {
  const { extBasicConstraints, extKeyUsage } = Parsed.parse(certificate.raw)
  const limit = extBasicConstraints?.pathLenConstraint
  const mayIssue = certificate.ca && extKeyUsage?.keyCertSign !== false && isForCode(certificate)
  return mayIssue && (limit === undefined || limit >= below)
}

/** @throws SignatureError `certificate` for a certificate that may not sign code, a TLS server's among them */
export function requireMaySign(der: Buffer): void {
  requireSigns(parsed(der))
}

function requireSigns(certificate: X509Certificate): void {
  const usage = Parsed.parse(certificate.raw).extKeyUsage
  const isForSigning = usage === undefined ? certificate.keyUsage !== undefined : usage.digitalSignature
  if (!isForSigning || !isForCode(certificate)) throw refused('its certificate may not be used to sign code')
}

/** An extended key usage leaves no use that it does not list; for an issuer's, those of the certificates below it. */
const isForCode = ({ keyUsage }: X509Certificate): boolean => keyUsage?.includes(CODE_SIGNING) !== false

function parsed(der: Buffer): X509Certificate {
  try {
    const certificate = new X509Certificate(der)
    // a certificate that only one of the two parsers accepts is refused.
    Parsed.parse(certificate.raw)
    return certificate
  } catch (cause) {
    throw refused('one of its certificates cannot be read', cause)
  }
}

/** All certificates of a PEM text. @throws SignatureError `input` */
export function certificatesOfPem(text: string): X509Certificate[] {
  const found = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g)
  if (found === null) throw new SignatureError('E_INVALID', 'input', 'it contains no certificate (PEM)')
  return given(() => found.map((pem) => new X509Certificate(pem)), 'it contains a certificate that cannot be read')
}
