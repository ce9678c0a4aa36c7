// A folder on the owner's disk was never chosen to be published: what no loader reads leaves with the model only if the owner says so,
// and a file with a secret's name is not kept at all.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseCompanions } from '@svc/manifest'
import { describe, expect, it } from 'vitest'
import { givenCompanions } from '../../../internal/state/src/given-companions.ts'
import { sharedByFile, type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { safetensors, writeFiles } from '../support/models.ts'

const shared = sharedByFile((cleanUp) => testDaemon({}, cleanUp))

const GIVEN = [
  ...[
    '1_Pooling/config.json',
    '2_Normalize/README.md',
    'LICENSE',
    'LICENSE-MIT',
    'NOTICE.txt',
    'README_zh.md',
    'USE_POLICY.md'
  ],
  ...['config.json', 'config_sentence_transformers.json', 'generation_config.json'],
  ...['hf_quant_config.json', 'model.sig', 'modules.json', 'my/helpers.py', 'params.json', 'token_embedding.py'],
  ...[
    'scheduler/scheduler_config.json',
    'sentence_bert_config.json',
    'templates/rag.jinja',
    'video_preprocessor_config.json'
  ]
]
const OWN = [
  ...[
    '2026-layoffs.csv',
    'aws.json',
    'config.json.bak',
    'db_config.json',
    'notes.txt',
    'runs/eval.json',
    'trainer_state.json'
  ],
  ...['training_args.bin', 'wandb/debug.log']
]
const SECRET = [
  ...[
    'credentials.json',
    'id_rsa',
    'id_ed25519.pub',
    'prod.env',
    'env.local',
    'server.pem',
    'tls/private.key',
    'token.txt',
    'hf_token'
  ],
  ...[
    'my-service-account.json',
    'client_secret_42.json',
    'API-KEY.txt',
    'secrets/config.json',
    'secrets.py',
    'LICENSE_KEY',
    'kubeconfig'
  ],
  ...['passwords.txt', 'wallet.kdbx', '_netrc', 'apikey.json'],
  // as people and browsers name copies
  ...['my secrets.py', 'secrets (1).py', 'api key.jinja', 'token (1).txt', 'id_rsa~', 'credentials copy.json']
]
const sorted = (names: readonly string[]): string[] =>
  [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
let seed = 400
const folder = (names: readonly string[], more: Record<string, Buffer> = {}): string =>
  writeFiles(temporaryFolder(), {
    'model.safetensors': safetensors(1_000, ++seed),
    ...more,
    ...Object.fromEntries(names.map((name) => [name, `the text of ${name}`]))
  })
async function imported(api: TestDaemon, as: string, path: string, more: object = {}) {
  const job = await api.finished((await api.post('/v1/import/local', { paths: [path], as, ...more })).body)
  expect(job.state).toBe('done')
  const ref = `svc:///${as}:bf16`
  const { companions } = (await api.open(ref)).body
  const why = (await api.get(`/v1/why?ref=${ref}`)).body
  const view = (await api.post('/v1/views', { ref })).body
  return { warnings: job.result!.warnings ?? [], companions, why, view, job }
}
const documentOf = (api: TestDaemon, digest: string) =>
  parseCompanions(readFileSync(join(api.root, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))))
const pathsOf = (files: readonly { path: string }[]): string[] => files.map(({ path }) => path)
const LOCAL = { source: { kind: 'local' } } as const

describe('companions of a local folder', () => {
  it('are shared only under names that loaders read; the owner’s views have the rest, and no secret is stored', async () => {
    const api = await shared()
    const path = folder([...GIVEN, ...OWN, ...SECRET, '.env'])
    const { companions, why, view, warnings } = await imported(api, 'own/some', path)
    expect(pathsOf(companions.files)).toEqual(sorted([...GIVEN, ...OWN]))
    expect(pathsOf(companions.files.filter(({ own }: { own?: boolean }) => own))).toEqual(sorted(OWN))
    expect(pathsOf(companions.omitted.filter(({ reason }: { reason: string }) => reason === 'secret'))).toEqual(
      sorted(SECRET)
    )
    expect(why.companions).toEqual({ given: GIVEN.length, own: sorted(OWN) })
    const shown = view.files.filter(({ own }: { own?: boolean }) => own)
    expect(shown.map(({ name }: { name: string }) => name)).toEqual(sorted(OWN))
    expect(OWN.every((name) => existsSync(join(view.folder, name)))).toBe(true)
    expect(SECRET.some((name) => existsSync(join(view.folder, name)))).toBe(false)
    for (const name of [OWN[0], sorted(SECRET)[0]]) expect(warnings.join('\n')).toContain(name)
    const stored = readdirSync(join(api.root, 'blobs/sha256'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    for (const name of SECRET)
      expect([name, stored.some((text) => text.includes(`the text of ${name}`))]).toEqual([name, false])
    const given = givenCompanions(documentOf(api, companions.digest), LOCAL)!
    expect(pathsOf(given.document.files)).toEqual(sorted(GIVEN))
    const text = Buffer.from(given.bytes).toString()
    for (const name of [...OWN, ...SECRET, '.env', '"own"']) expect([name, text.includes(name)]).toEqual([name, false])
  })

  it('are all shared if the owner says so, except secrets and hidden files with their names', async () => {
    const api = await shared()
    const { companions, why } = await imported(api, 'own/all', folder([...OWN, 'id_rsa', '.env']), {
      companions: 'all'
    })
    expect(why.companions).toEqual({ given: OWN.length, own: [] })
    const given = givenCompanions(documentOf(api, companions.digest), LOCAL)!
    expect(pathsOf(given.document.files)).toEqual(sorted(OWN))
    expect(pathsOf(given.document.omitted)).not.toContain('id_rsa')
    expect(pathsOf(given.document.omitted)).not.toContain('.env')
  })

  it('stay private when another source brings the same model, and in documents of earlier versions', async () => {
    const api = await shared()
    const { companions } = await imported(
      api,
      'own/later',
      folder(['notes.txt', 'README.md', 'trainer.log'], { 'dump.csv': Buffer.alloc(1_048_577) })
    )
    const document = documentOf(api, companions.digest)
    // the record names the last source
    for (const kind of ['oci', 'bt', 'local'] as const)
      expect(pathsOf(givenCompanions(document, { source: { kind } })!.document.files)).toEqual(['README.md'])
    expect(pathsOf(document.omitted)).toContain('dump.csv')
    expect(pathsOf(givenCompanions(document, { source: { kind: 'oci' } })!.document.omitted)).not.toContain('dump.csv')
    const secret = { ...document.files[0]!, path: 'secrets.py' }
    const unmarked = { ...document, files: [...document.files, secret].map(({ own: _, ...file }) => file) }
    expect(pathsOf(givenCompanions(unmarked, LOCAL)!.document.files)).toEqual(['README.md'])
    // a hub listed them: they were public there
    expect(pathsOf(givenCompanions(unmarked, { source: { kind: 'hf' } })!.document.files)).toHaveLength(4)
  })

  it('are absent for others if none may be shared', async () => {
    const api = await shared()
    const { companions, why } = await imported(api, 'own/none', folder(['notes.txt', 'id_rsa']))
    expect(why.companions).toEqual({ given: 0, own: ['notes.txt'] })
    expect(givenCompanions(documentOf(api, companions.digest), LOCAL)).toBeUndefined()
  })
})
