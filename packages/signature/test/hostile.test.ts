import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  compareWithFiles,
  defectsOf,
  type ModelFile,
  SignatureError,
  signModel,
  verifySignature
} from '../src/index.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const TYPE = 'application/vnd.in-toto+json'

interface Parts {
  readonly resources?: readonly object[]
  readonly serialization?: object
  readonly subject?: readonly object[]
  readonly predicateType?: string
  readonly statementType?: string
}

const entry = (name: string, content = name): object => ({ name, algorithm: 'sha256', digest: sha256(content) })

function statement({
  resources = [entry('a'), entry('b')],
  serialization,
  subject,
  predicateType,
  statementType
}: Parts): object {
  const whole = createHash('sha256')
  for (const { digest } of resources as { digest?: string }[]) whole.update(digest ?? '', 'hex')
  return {
    _type: statementType ?? 'https://in-toto.io/Statement/v1',
    subject: subject ?? [{ name: 'model', digest: { sha256: whole.digest('hex') } }],
    predicateType: predicateType ?? 'https://model_signing/signature/v1.0',
    predicate: {
      serialization: serialization ?? { method: 'files', hash_type: 'sha256', allow_symlinks: false },
      resources
    }
  }
}

/** What the cases change. */
interface Open {
  mediaType: string
  verificationMaterial?: {
    publicKey?: { hint: string } | null
    certificate?: object
    x509CertificateChain?: object
    tlogEntries?: readonly object[]
    timestampVerificationData?: object
  }
  messageSignature?: object
  dsseEnvelope: { payload: string; payloadType: string; signatures: { sig: string; keyid: string }[] }
}

/** Signed by the key that is trusted, whatever it says. */
function bundleOf(content: unknown, change: (bundle: Open) => unknown = () => undefined): Buffer {
  const payload = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content))
  const signed = Buffer.concat([Buffer.from(`DSSEv1 ${TYPE.length} ${TYPE} ${payload.length} `), payload])
  const sig = sign('sha256', signed, privateKey).toString('base64')
  const bundle: Open = {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint: sha256(pem) }, tlogEntries: [] },
    dsseEnvelope: { payload: payload.toString('base64'), payloadType: TYPE, signatures: [{ sig, keyid: '' }] }
  }
  change(bundle)
  return Buffer.from(JSON.stringify(bundle))
}

/** CPU time. Hostile input took 7 to 33 s where this did not hold. */
const HOSTILE_MS = 3_000
const cpuMs = (): number => process.cpuUsage().user / 1_000

const NOW = new Date('2026-06-01T00:00:00Z')
const verify = (bytes: Uint8Array): ReturnType<typeof verifySignature> => verifySignature(bytes, { keys: [pem] }, NOW)

function reasonOf(bytes: Uint8Array): string {
  try {
    verify(bytes)
  } catch (error) {
    if (error instanceof SignatureError) return error.reason
    throw error
  }
  return 'none'
}

test('the unchanged input of the tests below is accepted', () => {
  expect(verify(bundleOf(statement({}))).model.resources.map(({ path }) => path)).toEqual(['a', 'b'])
})

const twoParts = [entry('w:0:4', 'abcd'), entry('w:4:6', 'ef')]
const shards = { method: 'shards', hash_type: 'sha256', shard_size: 4 }

/** Its digest is that of the other order. */
const reordered: Parts = {
  resources: [entry('b'), entry('a')],
  subject: [
    {
      name: 'model',
      digest: { sha256: createHash('sha256').update(sha256('a'), 'hex').update(sha256('b'), 'hex').digest('hex') }
    }
  ]
}

test.each<readonly [string, Parts | string]>([
  ['no JSON', '{'],
  ['a list', '[]'],
  ['another statement', { statementType: 'https://in-toto.io/Statement/v0.1' }],
  ['another predicate', { predicateType: 'https://slsa.dev/provenance/v1' }],
  [
    'two models',
    {
      subject: [
        { name: 'a', digest: { sha256: sha256('') } },
        { name: 'b', digest: { sha256: sha256('') } }
      ]
    }
  ],
  ['the digest of other files', { subject: [{ name: 'model', digest: { sha256: sha256('') } }] }],
  ['no files', { resources: [] }],
  ['files in another order than their digest', reordered],
  ['a list short of a file', { ...reordered, resources: [entry('a')] }],
  ['a name twice', { resources: [entry('a'), entry('a', 'b')] }],
  ['a name and a part of it', { resources: [entry('w:0:4'), entry('w:0:4', 'x')], serialization: shards }],
  ['parts with a gap', { resources: [entry('w:0:4'), entry('w:5:6')], serialization: shards }],
  ['parts that begin late', { resources: [entry('w:4:6')], serialization: shards }],
  ['a part that ends before it begins', { resources: [entry('w:4:0')], serialization: shards }],
  ['a part without numbers', { resources: [entry('w')], serialization: shards }],
  ['a path upwards', { resources: [entry('../a')] }],
  ['a path upwards in the middle', { resources: [entry('a/../../b')] }],
  ['a path from the root', { resources: [entry('/etc/passwd')] }],
  ['a path of Windows', { resources: [entry('a\\..\\b')] }],
  ['a NUL', { resources: [entry('a\0b')] }],
  ['an empty name', { resources: [entry('')] }],
  ['a name as long as a book', { resources: [entry('a'.repeat(5_000))] }],
  ['a digest of another kind', { resources: [{ name: 'a', algorithm: 'blake3', digest: sha256('a') }] }],
  ['a digest that is too short', { resources: [{ name: 'a', algorithm: 'sha256', digest: 'abcd' }] }],
  ['another hash', { serialization: { method: 'files', hash_type: 'blake2b' } }],
  ['another method', { serialization: { method: 'tar', hash_type: 'sha256' } }],
  ['everything left out', { serialization: { method: 'files', hash_type: 'sha256', ignore_paths: ['./'] } }],
  ['a left-out path that is no text', { serialization: { method: 'files', hash_type: 'sha256', ignore_paths: [1] } }]
])('%s in what is signed: malformed', (_, content) => {
  expect(reasonOf(bundleOf(typeof content === 'string' ? content : statement(content)))).toBe('malformed')
})

test.each<readonly [string, (bundle: Open) => unknown, string]>([
  ['another kind of bundle', (bundle) => (bundle.mediaType = 'application/json'), 'malformed'],
  ['another payload type', (bundle) => (bundle.dsseEnvelope.payloadType = 'text/plain'), 'malformed'],
  ['no signature', (bundle) => (bundle.dsseEnvelope.signatures = []), 'malformed'],
  ['two signatures', (bundle) => bundle.dsseEnvelope.signatures.push(bundle.dsseEnvelope.signatures[0]!), 'malformed'],
  ['no material', (bundle) => delete bundle.verificationMaterial, 'malformed'],
  ['material without a key', (bundle) => (bundle.verificationMaterial = {}), 'malformed'],
  [
    'certificates that are none',
    (bundle) => (bundle.verificationMaterial = { x509CertificateChain: { certificates: [] } }),
    'malformed'
  ],
  ['a second content', (bundle) => (bundle.messageSignature = { signature: 'AAAA' }), 'malformed'],
  [
    'a key and a certificate',
    (bundle) => (bundle.verificationMaterial!.certificate = { rawBytes: 'AAAA' }),
    'malformed'
  ],
  [
    'a key and a chain',
    (bundle) => (bundle.verificationMaterial!.x509CertificateChain = { certificates: [{ rawBytes: 'AAAA' }] }),
    'malformed'
  ],
  [
    'more log entries than anybody makes',
    (bundle) => (bundle.verificationMaterial!.tlogEntries = Array.from({ length: 11 }, () => ({}))),
    'malformed'
  ],
  [
    'a proof of very many hashes',
    (bundle) =>
      (bundle.verificationMaterial!.tlogEntries = [
        { inclusionProof: { hashes: Array.from({ length: 65 }, () => '') } }
      ]),
    'malformed'
  ],
  [
    'more timestamps than anybody makes',
    (bundle) =>
      (bundle.verificationMaterial!.timestampVerificationData = {
        rfc3161Timestamps: Array.from({ length: 11 }, () => ({}))
      }),
    'malformed'
  ],
  ['Base64 that is none', (bundle) => (bundle.dsseEnvelope.payload = '%%%'), 'malformed'],
  ['the hint of another key', (bundle) => (bundle.verificationMaterial!.publicKey!.hint = sha256('')), 'key'],
  [
    'a signature of something else',
    (bundle) => (bundle.dsseEnvelope.signatures[0]!.sig = Buffer.from(sha256('')).toString('base64')),
    'key'
  ]
])('%s: refused', (_, change, reason) => {
  expect(reasonOf(bundleOf(statement({}), change))).toBe(reason)
})

test('a bundle over the limit is refused before it is parsed', () => {
  expect(reasonOf(Buffer.alloc(40 << 20, 0x20))).toBe('malformed')
})

test('a bundle at the limit that no key made is refused within seconds, whatever the number of keys', () => {
  const bundle = bundleOf('{}', ({ dsseEnvelope, verificationMaterial }) => {
    // no hint: each key has to be tried
    verificationMaterial!.publicKey = { hint: '' }
    const words = Buffer.from('https://model_signing/Digests/v0.1')
    dsseEnvelope.payload = Buffer.concat([words, Buffer.alloc(6_000_000, 0xff)]).toString('base64')
  })
  const began = cpuMs()
  const keys = Array.from({ length: 16 }, () => pem)
  expect(() => verifySignature(bundle, { keys }, NOW)).toThrow(expect.objectContaining({ reason: 'key' }))
  expect(cpuMs() - began).toBeLessThan(HOSTILE_MS)
})

test('very many log entries are refused at once, not compared with each other', () => {
  const tlogEntries = Array.from({ length: 20_000 }, () => ({
    logIndex: '1',
    integratedTime: '1',
    inclusionPromise: {}
  }))
  const bundle = bundleOf(statement({}), (bundle) => {
    bundle.verificationMaterial = { certificate: { rawBytes: 'AAAA' }, tlogEntries }
  })
  const began = cpuMs()
  expect(reasonOf(bundle)).toBe('malformed')
  expect(cpuMs() - began).toBeLessThan(HOSTILE_MS)
})

test('many ignored paths and many files take no more than their sum', async () => {
  const ignored = Array.from({ length: 1_000 }, (_, at) => `left/out/${at}`)
  const serialization = { method: 'files', hash_type: 'sha256', ignore_paths: ignored }
  const { model } = verify(bundleOf(statement({ serialization })))
  const files = Array.from({ length: 20_000 }, (_, at) => ({
    path: `left/out/${at}/x`,
    sizeBytes: 1,
    sha256: sha256('')
  }))
  const found = await compareWithFiles(model, files, { hashPart: never })
  expect([found.ignored.length, found.uncovered.length]).toEqual([1_000, 19_000])
  const many = { ...serialization, ignore_paths: [...ignored, 'one more'] }
  expect(reasonOf(bundleOf(statement({ serialization: many })))).toBe('malformed')
})

test('a list over the limit is refused', () => {
  const many = Array.from({ length: 100_001 }, () => entry('a'))
  expect(reasonOf(bundleOf(statement({ resources: many })))).toBe('malformed')
})

test('keys on other curves and invalid keys are refused', () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ type: 'spki', format: 'pem' })
  for (const keys of [[other.toString()], ['no key']])
    expect(() => verifySignature(bundleOf(statement({})), { keys }, NOW)).toThrow(
      expect.objectContaining({ reason: 'input' })
    )
})

const files: readonly ModelFile[] = ['a', 'b', 'config/c', '.git/HEAD'].map((path) => ({
  path,
  sizeBytes: path.length,
  sha256: sha256(path)
}))

test('a flipped byte, a missing file and an added one are named', async () => {
  const signed = signModel(
    { name: 'model', files: files.slice(0, 3), ignored: ['.git'] },
    { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
  )
  const { model, signer } = verify(signed)
  expect(signer).toEqual({ kind: 'key', fingerprint: sha256(pem) })
  const compare = (given: readonly ModelFile[]) =>
    compareWithFiles(model, given, { hashPart: never, signaturePath: 'model.sig' })
  const whole = {
    covered: ['a', 'b', 'config/c'],
    ignored: ['.git/HEAD'],
    notChosen: [],
    uncovered: [],
    missing: [],
    changed: []
  }
  expect(await compare(files)).toEqual(whole)
  const flipped = files.map((file) => (file.path === 'b' ? { ...file, sha256: sha256('B') } : file))
  expect(await compare(flipped)).toEqual({ ...whole, covered: ['a', 'config/c'], changed: ['b'] })
  expect(await compare(files.slice(1))).toEqual({ ...whole, covered: ['b', 'config/c'], missing: ['a'] })
  const added = { path: 'pytorch_model.bin', sizeBytes: 1, sha256: sha256('x') }
  expect(await compare([...files, added])).toEqual({ ...whole, uncovered: ['pytorch_model.bin'] })
  const own = { path: 'model.sig', sizeBytes: 1, sha256: sha256('x') }
  expect(await compare([...files, own])).toEqual({ ...whole, ignored: ['.git/HEAD', 'model.sig'] })
})

test('a renamed file counts as that file, and files left out are not missing', async () => {
  const { model } = verify(bundleOf(statement({ resources: [entry('A.gguf'), entry('B.gguf'), entry('b.gguf', 'c')] })))
  const compare = (...given: readonly ModelFile[]) =>
    compareWithFiles(model, given, {
      hashPart: never,
      nameHere: (path) => path.toLowerCase(),
      isLeftOut: (path) => path === 'B.gguf'
    })
  const [a, b] = [
    { path: 'a.gguf', sizeBytes: 6, sha256: sha256('A.gguf') },
    { path: 'b.gguf', sizeBytes: 1, sha256: sha256('c') }
  ]
  const found = await compare(a, b)
  expect(found).toMatchObject({ covered: ['A.gguf', 'b.gguf'], notChosen: ['B.gguf'], uncovered: [] })
  expect(defectsOf(found)).toEqual([])
  expect(defectsOf(await compare({ ...a, sha256: sha256('x') }, { ...b, path: 'c.gguf' }))).toEqual([
    ['changed', ['A.gguf']],
    ['missing', ['b.gguf']],
    ['not signed', ['c.gguf']]
  ])
})

test('a file with very many parts counts as one file', async () => {
  const resources = Array.from({ length: 50_000 }, (_, at) => entry(`w:${at}:${at + 1}`, 'x'))
  const { model } = verify(bundleOf(statement({ resources, serialization: shards })))
  const file = { path: 'w', sizeBytes: 50_000, sha256: sha256('') }
  expect((await compareWithFiles(model, [file], { hashPart: async () => sha256('x') })).covered).toEqual(['w'])
})

test('a file signed in parts is checked part by part, and by its length', async () => {
  const { model } = verify(bundleOf(statement({ resources: twoParts, serialization: shards })))
  const content = { w: 'abcdef' }
  const hashPart = async (_: string, start: number, end: number): Promise<string> => sha256(content.w.slice(start, end))
  const compare = () =>
    compareWithFiles(model, [{ path: 'w', sizeBytes: content.w.length, sha256: sha256(content.w) }], { hashPart })
  expect((await compare()).covered).toEqual(['w'])
  content.w = 'abcdeF'
  expect((await compare()).changed).toEqual(['w'])
  content.w = 'abcdefg'
  expect((await compare()).changed).toEqual(['w'])
})

function never(): never {
  throw new Error('no part is to be read')
}
