// Chains of certificates that openssl makes.
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signModel, verifySignature } from '../src/index.ts'

const haveOpenssl = process.env.SVC_REQUIRE_INTEROP === '1' || spawnSync('openssl', ['version']).error === undefined

const files = [{ path: 'a', sha256: '0'.repeat(64) }]
const CA = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign'
const SIGNER = 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature'

describe.skipIf(!haveOpenssl)('a chain of certificates (openssl)', () => {
  let folder: string
  const at = (name: string): string => join(folder, name)
  const text = (name: string): string => readFileSync(at(name), 'utf8')

  function openssl(...args: string[]): void {
    const { status, stderr } = spawnSync('openssl', args, { cwd: folder })
    if (status !== 0) throw new Error(stderr.toString())
  }

  /** A key and its certificate, issued by another one or by itself, for thirty days from now. */
  async function certificate(name: string, extensions: string, issuer = name): Promise<void> {
    await writeFile(at(`${name}.ext`), extensions)
    openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', `${name}.key`)
    openssl('req', '-new', '-key', `${name}.key`, '-subj', `/O=tests/CN=${name}`, '-out', `${name}.csr`)
    const by = issuer === name ? ['-signkey', `${name}.key`] : ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`]
    const made = ['-set_serial', '7', '-days', '30', '-extfile', `${name}.ext`, '-out', `${name}.pem`]
    openssl('x509', '-req', '-in', `${name}.csr`, ...by, ...made)
  }

  const signed = (...chain: readonly string[]): Uint8Array =>
    signModel(
      { name: 'model', files, ignored: [] },
      { key: text(`${chain[0]}.key`), certificates: chain.map((name) => text(`${name}.pem`)).join('') }
    )

  function reasonOf(bundle: Uint8Array, root = 'root', daysLater = 1): string {
    const { validFromDate } = new X509Certificate(text('signer.pem'))
    const now = new Date(validFromDate.getTime() + daysLater * 86_400_000)
    try {
      const { signer } = verifySignature(bundle, { certificates: [text(`${root}.pem`)] }, now)
      return `by ${(signer as { subject: string }).subject}`
    } catch (error) {
      return (error as { reason: string }).reason
    }
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-signature-'))
    await certificate('root', CA)
    await certificate('other', CA)
    await certificate('between', CA, 'root')
    await certificate('signer', SIGNER, 'between')
    await certificate('below', SIGNER, 'signer')
    await certificate('server', 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,keyAgreement', 'between')
    await certificate('code', 'extendedKeyUsage=codeSigning', 'between')
    const tls = 'extendedKeyUsage=serverAuth,clientAuth'
    await certificate('site', `${SIGNER}\n${tls}`, 'between')
    await certificate('anything', `${SIGNER}\nextendedKeyUsage=anyExtendedKeyUsage`, 'between')
    await certificate('both', `${SIGNER}\n${tls},codeSigning`, 'between')
    await certificate('agreeing', 'keyUsage=critical,keyAgreement\nextendedKeyUsage=codeSigning', 'between')
    await certificate('sites', `${CA}\n${tls}`, 'root')
    await certificate('below-sites', SIGNER, 'sites')
    await certificate('flat', `${CA.replace('TRUE', 'TRUE,pathlen:0')}`, 'root')
    await certificate('deeper', CA, 'flat')
    await certificate('deepest', SIGNER, 'deeper')
    await certificate('narrow', `${CA}\nnameConstraints=critical,permitted;DNS:example.org`, 'root')
    await certificate('narrowed', SIGNER, 'narrow')
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('leads to the trusted root, even if that is its middle or its end', () => {
    expect(reasonOf(signed('signer', 'between'))).toBe('by O=tests, CN=signer')
    expect(reasonOf(signed('signer'), 'between')).toBe('by O=tests, CN=signer')
    expect(reasonOf(signed('signer'), 'signer')).toBe('by O=tests, CN=signer')
    expect(reasonOf(signed('code', 'between'))).toBe('by O=tests, CN=code')
  })

  test('that leads elsewhere, lacks a part or brings its own root is refused', () => {
    expect(reasonOf(signed('signer', 'between'), 'other')).toBe('certificate')
    expect(reasonOf(signed('signer'))).toBe('certificate')
    expect(reasonOf(signed('signer', 'between', 'root'), 'other')).toBe('certificate')
    expect(reasonOf(signed('root'), 'other')).toBe('certificate')
  })

  test('with a certificate that may not issue or sign is refused', () => {
    expect(reasonOf(signed('below', 'signer', 'between'))).toBe('certificate')
    expect(reasonOf(signed('server', 'between'))).toBe('certificate')
    expect(reasonOf(signed('deepest', 'deeper', 'flat'))).toBe('certificate')
    expect(reasonOf(signed('narrowed', 'narrow'))).toBe('certificate')
  })

  test('with an extended key usage must have that of code', () => {
    expect(reasonOf(signed('site', 'between'))).toBe('certificate')
    expect(reasonOf(signed('site'), 'site')).toBe('certificate')
    expect(reasonOf(signed('anything', 'between'))).toBe('certificate')
    expect(reasonOf(signed('agreeing', 'between'))).toBe('certificate')
    expect(reasonOf(signed('below-sites', 'sites'))).toBe('certificate')
    expect(reasonOf(signed('both', 'between'))).toBe('by O=tests, CN=both')
  })

  test('that has expired, or is not valid yet, is refused', () => {
    expect(reasonOf(signed('signer', 'between'), 'root', 29)).toBe('by O=tests, CN=signer')
    expect(reasonOf(signed('signer', 'between'), 'root', 31)).toBe('certificate')
    expect(reasonOf(signed('signer', 'between'), 'root', -1)).toBe('certificate')
  })

  test('with the name of the trusted root, and another key, is refused', async () => {
    const before = [text('root.pem'), text('root.key')] as const
    await writeFile(at('true.pem'), before[0])
    await certificate('root', CA)
    await certificate('liar', SIGNER, 'root')
    expect(reasonOf(signed('liar', 'root'), 'true')).toBe('certificate')
    await Promise.all([writeFile(at('root.pem'), before[0]), writeFile(at('root.key'), before[1])])
  })

  test('a certificate of another key is refused for signing', () => {
    const sign = () =>
      signModel({ name: 'model', files, ignored: [] }, { key: text('signer.key'), certificates: text('code.pem') })
    expect(sign).toThrow(expect.objectContaining({ reason: 'input' }))
  })

  test('openssl verifies what the key signs', async () => {
    const { dsseEnvelope } = JSON.parse(Buffer.from(signed('signer', 'between')).toString()) as {
      readonly dsseEnvelope: {
        readonly payload: string
        readonly payloadType: string
        readonly signatures: readonly { readonly sig: string }[]
      }
    }
    const payload = Buffer.from(dsseEnvelope.payload, 'base64')
    const type = dsseEnvelope.payloadType
    await writeFile(
      at('signed'),
      Buffer.concat([Buffer.from(`DSSEv1 ${type.length} ${type} ${payload.length} `), payload])
    )
    await writeFile(at('sig'), Buffer.from(dsseEnvelope.signatures[0]!.sig, 'base64'))
    openssl('x509', '-in', 'signer.pem', '-pubkey', '-noout', '-out', 'signer.pub')
    openssl('dgst', '-sha256', '-verify', 'signer.pub', '-signature', 'sig', 'signed')
  })
})
