// A mirror gives the files that its rule was checked with: those of the artifact under the name it is asked for.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mergeConfig } from '../../src/config/config.ts'
import { storeAltered } from '../support/altered-manifest.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { type Files, writeFiles } from '../support/models.ts'
import { FOLDER, signerIn } from '../support/signed-models.ts'
import { filesAt } from './shown-files.ts'

async function world(more: object = {}) {
  const folder = temporaryFolder()
  const signer = signerIn(folder)
  const file = {
    swarm: { enabled: false },
    mirror: { s3_addr: '127.0.0.1:0', oci_addr: '127.0.0.1:0' },
    trust: [{ names: ['acme/*'], mode: 'require', keys: [signer.keyFile] }],
    ...more
  }
  const daemon = await testDaemon({ folder, config: mergeConfig(file, { root: join(folder, 'root') }, {}) })
  const add = async (as: string, files: Files): Promise<void> => {
    const job = await daemon.import([writeFiles(temporaryFolder(), files)], as)
    expect(job.error).toBeUndefined()
  }
  return { daemon, signer, add }
}

const EVIL = { 'custom_generate/generate.py': 'import os\n', 'generation_config.json': '{"temperature":9}' }

test.each([['before'], ['after']])(
  'companions of another name of the same artifact, imported %s, are not given under a name with a rule',
  async (when) => {
    const { daemon, signer, add } = await world()
    const signed = signer.sign(FOLDER)
    const others = { ...FOLDER, ...EVIL }
    if (when === 'before') await add('other/name', others)
    await add('acme/good', signed)
    if (when === 'after') await add('other/name', others)
    const [good, other] = ['svc:///acme/good:bf16', 'svc:///other/name:bf16']
    const digests = [good, other].map(async (ref) => (await daemon.resolve(ref!)).body.manifestDigest)
    expect(await digests[0]).toBe(await digests[1])
    const paths = Object.keys(signed).sort()
    for (const door of ['s3', 'oci'] as const) {
      const shown = await filesAt(daemon, door, 'acme/good', 'bf16')
      expect([door, [...shown.keys()].sort()]).toEqual([door, paths])
      expect(shown.get('generation_config.json')).toBe(FOLDER['generation_config.json'])
      const elsewhere = await filesAt(daemon, door, 'other/name', 'bf16')
      expect([door, [...elsewhere.keys()].sort()]).toEqual([door, Object.keys(others).sort()])
      expect(elsewhere.get('generation_config.json')).toBe(EVIL['generation_config.json'])
    }
  }
)

const shows = async (daemon: TestDaemon, name: string): Promise<boolean[]> => [
  (await filesAt(daemon, 's3', name, 'bf16')).size > 0,
  (await filesAt(daemon, 'oci', name, 'bf16')).size > 0
]

test.each([
  ['code', 'modeling_evil.py'],
  ['a chat template', 'chat_template.jinja'],
  ['the text of a signed file', 'LICENSE']
])('a licence annotation with the name of %s, which no signature covers, is refused by the rule', async (_, name) => {
  const { daemon, signer, add } = await world()
  await add('acme/good', signer.sign(FOLDER))
  expect(await shows(daemon, 'acme/good')).toEqual([true, true])
  await storeAltered(daemon, 'svc:///acme/good:bf16', 'acme/evil', { [`svc.license.file.${name}`]: '{{ evil }}' })
  await storeAltered(daemon, 'svc:///acme/good:bf16', 'other/evil', { [`svc.license.file.${name}`]: '{{ evil }}' })
  expect(await shows(daemon, 'acme/evil')).toEqual([false, false])
  // without a rule it is a file like any other
  const files = await filesAt(daemon, 's3', 'other/evil', 'bf16')
  expect(files.get(name)).toBe('{{ evil }}')
})

test.each([['own'], ['lost']])(
  'a signed config.json that is %s is not replaced by the text in a manifest',
  async (how) => {
    const { daemon, signer, add } = await world()
    await add('other/signed', signer.sign(FOLDER))
    await add('other/evil', { ...FOLDER, 'config.json': '{"auto_map":"evil.py"}' })
    const { companions } = (await daemon.open('svc:///other/signed:bf16')).body
    const signed = (await daemon.running.context.documents.companions(companions.digest))!
    const ofConfig = ({ path }: { readonly path: string }): boolean => path === 'config.json'
    await storeAltered(daemon, 'svc:///other/evil:bf16', 'acme/evil', {}, () => ({
      ...signed,
      files: signed.files.map((file) => (how === 'own' && ofConfig(file) ? { ...file, own: true } : file))
    }))
    if (how === 'lost') rmSync(companions.files.find(ofConfig).blobPath)
    for (const door of ['s3', 'oci'] as const) {
      const files = await filesAt(daemon, door, 'acme/evil', 'bf16')
      expect([door, files.get('config.json'), files.get('tokenizer.json')]).toEqual([
        door,
        undefined,
        '{"version":"1.0"}'
      ])
    }
  }
)

test('a stored manifest with licence names that no file may have keeps its other files', async () => {
  const { daemon, add } = await world()
  await add('other/model', { ...FOLDER, 'sub/x.txt': 'x', 'vocab.json': '{}' })
  const bad = [
    '../../escaped',
    '/etc/passwd',
    'a/../../b',
    'x\\y',
    'c\0d',
    '',
    'sub',
    'modeling_tiny.py/x',
    'MODELING_tiny.py',
    'Tokenizer.json',
    'TOKENIZER.json/x',
    'config.json',
    '.git/config',
    '.svc-view.json'
  ]
  await storeAltered(
    daemon,
    'svc:///other/model:bf16',
    'other/bad',
    Object.fromEntries(bad.map((name) => [`svc.license.file.${name}`, 'evil']))
  )
  const sound = await filesAt(daemon, 's3', 'other/model', 'bf16')
  for (const door of ['s3', 'oci'] as const)
    expect([door, await filesAt(daemon, door, 'other/bad', 'bf16')]).toEqual([door, sound])
  const view = await daemon.post('/v1/views', { ref: 'svc:///other/bad:bf16' })
  const listed = view.body.files.map(({ name }: { name: string }) => name)
  expect(listed.sort()).toEqual([...sound.keys(), 'sub/x.txt'].sort())
})
