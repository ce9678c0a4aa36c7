// Which rules [[trust]] apply to a model of several names, what a folder may lack, and how a stranger's signature is read.
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, onTestFinished, test } from 'vitest'
import { SignatureReader } from '../../../internal/state/src/signature-calls.ts'
import { TrustRules } from '../../../internal/state/src/trust.ts'
import { trustRules } from '../../src/config/trust.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { FOLDER, type Signer, signerIn } from '../support/signed-models.ts'

interface RuleOf {
  readonly names: string
  readonly mode: string
  readonly by?: Signer
}

async function rulesOf(...tables: readonly RuleOf[]): Promise<TrustRules> {
  const anybody = signerIn(temporaryFolder(), 'anybody')
  const rules = await TrustRules.open(
    trustRules(tables.map(({ names, mode, by = anybody }) => ({ names: [names], mode, keys: [by.keyFile] })))
  )
  onTestFinished(() => rules.close())
  return rules
}

const clock = new VirtualClock()
const statement = (signer: Signer): Uint8Array => signer.sign({ 'a.txt': 'a' })['model.sig'] as Uint8Array

test('the first rule that matches the one name of a model applies', async () => {
  const rules = await rulesOf(
    { names: 'acme/free-*', mode: 'off' },
    { names: 'acme/*', mode: 'require' },
    { names: '*', mode: 'warn' }
  )
  const modeOf = (...typed: string[]): string | undefined => rules.ruleFor({ typed, claimed: [] })?.mode
  expect(['acme/free-x', 'ACME/x', 'me/x'].map((name) => modeOf(name))).toEqual([undefined, 'require', 'warn'])
  expect(modeOf()).toBe('warn')
})

test.each([
  ['off', '*'],
  ['warn', '*'],
  ['off', 'acme/*'],
  ['warn', 'acme/*']
])('a claimed name whose rule is %s does not relax one that requires a signature of %s', async (lax, strict) => {
  const rules = await rulesOf({ names: 'lax/*', mode: lax }, { names: strict, mode: 'require' })
  for (const typed of [['acme/x'], ...(strict === '*' ? [[]] : [])])
    expect(rules.ruleFor({ typed, claimed: [undefined, 'lax/x'] })).toMatchObject({ mode: 'require' })
  // the owner's own word
  expect(rules.ruleFor({ typed: ['lax/x'], claimed: ['lax/x'] })?.mode).toBe(lax === 'off' ? undefined : lax)
})

test('a claimed name adds what its rule requires', async () => {
  const rules = await rulesOf(
    { names: 'me/*', mode: 'off' },
    { names: 'near/*', mode: 'warn' },
    { names: 'acme/*', mode: 'require' }
  )
  expect(rules.ruleFor({ typed: ['near/x'], claimed: ['Acme/x'] })).toMatchObject({ mode: 'require' })
  expect(rules.ruleFor({ typed: ['me/x'], claimed: ['Acme/x'] })).toMatchObject({ mode: 'require' })
  expect(rules.ruleFor({ typed: ['me/x'], claimed: ['other/x'] })).toBeUndefined()
})

test('of two rules with different keys, both must hold', async () => {
  const [acme, other] = ['acme', 'other'].map((name) => signerIn(temporaryFolder(), name)) as [Signer, Signer]
  const rules = await rulesOf(
    { names: 'other/*', mode: 'require', by: other },
    { names: 'acme/*', mode: 'require', by: acme }
  )
  const both = rules.ruleFor({ typed: ['acme/x'], claimed: ['other/x'] })!
  expect(both.label).toMatch(/\[\[trust\]\] 2 .*\[\[trust\]\] 1 /)
  for (const signer of [acme, other])
    await expect(rules.signed(both, statement(signer), clock)).rejects.toMatchObject({ code: 'E_NOT_IMPORTABLE' })
  const alone = rules.ruleFor({ typed: ['acme/x'], claimed: ['Acme/X', 'acme/y'] })!
  expect((await rules.signed(alone, statement(acme), clock)).paths).toEqual(new Set(['a.txt']))
})

test('a signed file that others list as omitted is missing, unless its owner left it out or no loader misses it', async () => {
  const signer = signerIn(temporaryFolder())
  const api = await testDaemon({ fileConfig: { swarm: { enabled: false } } })
  const files = signer.sign({
    ...FOLDER,
    'other-Q8_0.gguf': gguf(3_000, 71),
    'split-00001-of-00002.gguf': gguf(3_000, 72),
    'split-00002-of-00002.gguf': gguf(3_000, 73),
    'assets/picture.png': 'a picture'
  })
  const { body } = await api.post('/v1/import/local', {
    paths: [writeFiles(temporaryFolder(), files)],
    as: 'acme/whole'
  })
  const { result } = await api.finished(body)
  const { documents, artifacts, store } = api.running.context
  const rules = await rulesOf({ names: '*', mode: 'require', by: signer })
  const rule = rules.ruleFor({ typed: ['acme/whole'], claimed: [] })!
  const brought: { entries: object[]; companions: object[] } = { entries: [], companions: [] }
  for (const digest of result!.manifests as Sha256Digest[]) {
    const manifest = (await documents.manifest(digest))!
    const isNew = ({ name }: { name: string }): boolean =>
      !brought.entries.some((file) => (file as typeof file & { name: string }).name === name)
    brought.entries.push(...manifest.files.filter((file) => file.kind !== 'config' && isNew(file)))
    brought.companions = [...(await documents.companions((await artifacts.read(digest))!.source.companions!))!.files]
  }
  const isNot =
    (out: string) =>
    (file: object): boolean =>
      (file as { name?: string }).name !== out && (file as { path?: string }).path !== out
  const without = async (path: string, reason: string | undefined, more: object = {}): Promise<unknown> => {
    const model = {
      entries: brought.entries.filter(isNot(path)),
      annotations: {},
      companions: brought.companions.filter(isNot(path)),
      omitted: reason === undefined ? [] : [{ path, reason }],
      ...more
    } as unknown as Parameters<TrustRules['check']>[1]
    return rules.check(rule, model, { store, clock }).catch((error: Error) => error.message)
  }
  for (const path of ['config.json', 'generation_config.json', 'modeling_tiny.py', 'split-00002-of-00002.gguf'])
    for (const reason of ['artifact', 'large'])
      expect(await without(path, reason)).toEqual(expect.stringContaining(`missing: ${path}`))
  for (const path of ['assets/picture.png', 'nothing']) expect(await without(path, 'many')).toEqual([])
  expect(await without('assets/picture.png', undefined)).toEqual(expect.stringContaining('missing: assets'))
  const weights = 'other-Q8_0.gguf'
  const missing = expect.stringContaining(`missing: ${weights}`)
  for (const choice of [undefined, {}, { aux: 'none' }, { files: ['*'] }])
    expect(await without(weights, 'artifact', { choice })).toEqual(missing)
  // whether the source lists it or not
  for (const reason of ['artifact', undefined])
    expect(await without(weights, reason, { choice: { files: ['model*', 'split-*'] } })).toEqual([])
  expect(await without('split-00002-of-00002.gguf', 'artifact', { choice: { files: ['*-00001-*'] } })).not.toEqual([])
})

test('a hostile signature is read beside the event loop', async () => {
  const folder = temporaryFolder()
  const keys = Array.from({ length: 16 }, (_, at) => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const file = join(folder, `${at}.pub`)
    writeFileSync(file, publicKey.export({ type: 'spki', format: 'pem' }))
    return file
  })
  const rules = await TrustRules.open(trustRules([{ names: ['*'], mode: 'require', keys }]))
  onTestFinished(() => rules.close())
  const payload = Buffer.concat([Buffer.from('https://model_signing/Digests/v0.1'), Buffer.alloc(700_000, 0xff)])
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const type = 'application/vnd.in-toto+json'
  const bundle = {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint: '' }, tlogEntries: [] },
    dsseEnvelope: {
      payload: payload.toString('base64'),
      payloadType: type,
      signatures: [{ sig: sign('sha256', createHash('sha256').digest(), privateKey).toString('base64'), keyid: '' }]
    }
  }
  const bytes = Buffer.from(JSON.stringify(bundle))
  expect(bytes.length).toBeLessThan(1 << 20)
  const rule = rules.ruleFor({ typed: ['acme/x'], claimed: [] })!
  let isOver = false
  const read = rules.signed(rule, bytes, clock).then(
    () => 'signed',
    (error: Error) => error.message
  )
  void read.finally(() => (isOver = true))
  let turns = 0
  for (; !isOver; turns++) await new Promise((resolve) => setImmediate(resolve))
  expect(await read).toContain('none of the given keys made it')
  // one or two where it was read here
  expect(turns).toBeGreaterThan(50)
})

test('reading a signature ends when its time is over, with an error that says so, and the next one is read', async () => {
  const signer = signerIn(temporaryFolder())
  const bytes = statement(signer)
  const rules = await rulesOf({ names: '*', mode: 'require', by: signer })
  const { trusts } = rules.ruleFor({ typed: [], claimed: [] })!
  let isOver = true
  const reader = new SignatureReader('hurried', {
    after: (ms, act) => {
      if (isOver) act()
      return clock.after(ms, act)
    }
  })
  onTestFinished(() => reader.close())
  const request = { bytes, trusts, nowMs: clock.now() }
  expect(await reader.verify(request)).toEqual({ refused: expect.stringMatching(/more than 10 s/) })
  isOver = false
  expect(await reader.verify(request)).toMatchObject({ model: { resources: [{ path: 'a.txt' }] } })
})
