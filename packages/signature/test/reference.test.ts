// Signatures that the reference implementation made in each of its releases, against files of the same content.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import seeds from '@sigstore/tuf/seeds.json' with { type: 'json' }
import { expect, test } from 'vitest'
import { compareWithFiles, type ModelFile, SignatureError, type Trust, verifySignature } from '../src/index.ts'

const read = (name: string): Buffer => readFileSync(new URL(`reference/${name}`, import.meta.url))
const file = (path: string, content: string): ModelFile => ({
  path,
  sizeBytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex')
})
function noParts(): never {
  throw new Error('no part is to be read')
}

/** The trust root of Sigstore's public instance, as the package that updates it brings it along. */
const ROOT = Buffer.from(Object.values(seeds)[0]!.targets['trusted_root.json'], 'base64').toString('utf8')

const key: Trust = { keys: [read('signing-key-pub.pem').toString()] }
const certificate: Trust = { certificates: [read('ca-cert.pem').toString()] }
const signerOfTests = { issuer: 'https://sigstore.verify.ibm.com/oauth2', subject: 'stefanb@us.ibm.com' }
const login: Trust = { identities: [signerOfTests], root: ROOT }
/** All of its certificates are valid. */
const NOW = new Date('2026-06-01T00:00:00Z')

const two = [file('signme-1', 'signme-1'), file('signme-2', 'signme-2')]
const left = file('ignore-me', '')
const CASES: readonly (readonly [string, Trust, readonly ModelFile[]])[] = [
  ['v0.2.0-certificate', certificate, two],
  ['v0.3.1-certificate', certificate, two],
  ['v1.0.1-certificate', certificate, two],
  ['v1.1.0-certificate', certificate, [...two, left]],
  ['v0.3.1-elliptic-key', key, [file('signme-1', 'signme-1\n')]],
  ['v1.1.0-elliptic-key', key, [file('signme-1', 'signme-1\n'), file('signme-2', 'signme-2'), left]],
  ['v0.3.1-sigstore', login, two],
  ['v1.1.0-sigstore', login, [...two, left]]
]

for (const [name, trust, files] of CASES) {
  test(`${name} holds, and covers its files`, async () => {
    const { model, signer } = verifySignature(read(`${name}.sig`), trust, NOW)
    const found = await compareWithFiles(model, files, { hashPart: noParts })
    const signed = files.map(({ path }) => path).filter((path) => path !== 'ignore-me')
    expect(found).toEqual({
      covered: signed,
      ignored: files.includes(left) ? ['ignore-me'] : [],
      notChosen: [],
      uncovered: [],
      missing: [],
      changed: []
    })
    if (trust === login) expect(signer).toEqual({ kind: 'identity', ...signerOfTests })
  })

  test(`${name} with one byte changed is refused`, () => {
    const bundle = JSON.parse(read(`${name}.sig`).toString()) as { dsseEnvelope: { payload: string } }
    const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64')
    payload[payload.length >> 1]! ^= 1
    bundle.dsseEnvelope.payload = payload.toString('base64')
    expect(() => verifySignature(Buffer.from(JSON.stringify(bundle)), trust, NOW)).toThrow(SignatureError)
  })
}

function reasonOf(name: string, trust: Trust, now = NOW): string | undefined {
  try {
    verifySignature(read(`${name}.sig`), trust, now)
  } catch (error) {
    return (error as SignatureError).reason
  }
  return undefined
}

test('another login is refused, even if a pattern would match it', () => {
  const by = (subject: string, issuer = signerOfTests.issuer): string | undefined =>
    reasonOf('v1.1.0-sigstore', { ...login, identities: [{ issuer, subject }] })
  expect(by('stefanb@us.ibm.com')).toBeUndefined()
  expect(by('stefanb@us.ibm')).toBe('identity')
  expect(by('.*')).toBe('identity')
  expect(by('stefanb@us.ibm.com', 'https://accounts.google.com')).toBe('identity')
})

test('a signature that no given key, certificate or login verifies is refused', () => {
  expect(reasonOf('v1.1.0-elliptic-key', certificate)).toBe('untrusted')
  expect(reasonOf('v1.1.0-certificate', key)).toBe('untrusted')
  expect(reasonOf('v1.1.0-sigstore', { identities: [signerOfTests] })).toBe('untrusted')
  expect(reasonOf('v1.1.0-sigstore', { ...login, root: '{}' })).toBe('keyless')
  expect(reasonOf('v1.1.0-sigstore', { ...login, root: 'none' })).toBe('input')
})

test('an expired certificate is refused, but not a logged login with one', () => {
  expect(reasonOf('v1.1.0-certificate', certificate, new Date('2036-01-01'))).toBe('certificate')
  expect(reasonOf('v1.1.0-certificate', certificate, new Date('2025-01-01'))).toBe('certificate')
  expect(reasonOf('v1.1.0-sigstore', login, new Date('2036-01-01'))).toBeUndefined()
})
