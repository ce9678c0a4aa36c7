import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Paths of the PEM files of a self-signed certificate and its key. */
export interface Certificate {
  readonly key: string
  readonly certificate: string
}

/** Creates a certificate for `host`, an IP address, valid for a day. Clients have to trust `certificate` as a CA. */
export function makeCertificate(folder: string, host: string): Certificate {
  const made = { key: join(folder, 'key.pem'), certificate: join(folder, 'certificate.pem') }
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
      ...['-subj', '/CN=svc bench', '-addext', `subjectAltName=IP:${host}`],
      ...['-keyout', made.key, '-out', made.certificate]
    ],
    { stdio: 'ignore' }
  )
  return made
}
