// Documents in a model's folder may name files outside it.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeView } from '../library/view-calls.ts'
import { testDaemon } from '../support/daemon.ts'
import { safetensors, writeFiles } from '../support/models.ts'

const INDEX = 'model.safetensors.index.json'
const SECRET = safetensors(4_000)
const REF = 'svc:///me/model:bf16'

/** A folder whose documents point to a file beside it, by relative and absolute paths. */
function hostile(folder: string): string {
  const secret = join(writeFiles(folder, { 'secret.safetensors': SECRET }), 'secret.safetensors')
  const outside = '../secret.safetensors'
  const json = (value: object): string => JSON.stringify(value)
  return writeFiles(join(folder, 'Model'), {
    'model-00001-of-00002.safetensors': safetensors(2_000),
    'model-00002-of-00002.safetensors': safetensors(3_000),
    [INDEX]: json({
      weight_map: { a: 'model-00001-of-00002.safetensors', b: outside, c: secret, d: 7, e: 'file:///etc/passwd' }
    }),
    'config.json': json({
      model_type: 'llama',
      _name_or_path: secret,
      auto_map: {
        AutoModel: '../secret.Model',
        AutoConfig: 'other/repo--configuration.Config',
        AutoTokenizer: [outside, 'https://127.0.0.1/x--y.Z']
      }
    }),
    'tokenizer.json': '{}',
    'tokenizer_config.json': json({ tokenizer_file: outside, vocab_file: secret, chat_template: outside }),
    'modules.json': json([
      { path: '../', type: 'x' },
      { path: folder, type: 'x' }
    ]),
    'adapter_config.json': json({ base_model_name_or_path: outside }),
    'adapter_model.safetensors': safetensors(1_000)
  })
}

const sha256 = (bytes: string | Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

test.each(['imported', 'adopted'])(
  '%s and viewed, names outside the folder lead nowhere, and shards there are told',
  async (how) => {
    const daemon = await testDaemon()
    const model = hostile(join(daemon.folder, 'in'))
    const told = expect.stringMatching(/index\.json names files outside the model.*\.\.\/secret\.safetensors/)
    const filesIn = (folder: string) => readdirSync(folder).map((name) => ({ name, path: join(folder, name) }))
    const brought = () =>
      how === 'imported'
        ? daemon.post('/v1/import/local', { paths: [model], as: 'me/model' })
        : daemon.post('/v1/adopt', { files: filesIn(model), as: 'me/model', own: true })
    for (const [name, target] of [
      ['linked.safetensors', '../secret.safetensors'],
      ['vocab.txt', '../../../../../../../../etc/passwd']
    ] as const) {
      symlinkSync(target, join(model, name))
      expect((await brought()).body.error).toMatchObject({
        code: 'E_SOURCE_NOT_REGULAR',
        message: expect.stringContaining(name)
      })
      unlinkSync(join(model, name))
    }
    const job = await daemon.finished((await brought()).body)
    expect(job).toMatchObject({ state: 'done', result: { warnings: expect.arrayContaining([told]) } })
    expect((await daemon.get(`/v1/blob/${sha256(SECRET)}`)).status).toBe(404)
    for (const layout of ['files', 'hf']) {
      const places = join(daemon.folder, layout, 'places')
      mkdirSync(places, { recursive: true })
      const view = await makeView(daemon, { ref: REF, path: join(places, 'view'), layout, mode: 'copy' })
      expect(view.warnings).toEqual(expect.arrayContaining([told]))
      expect([readdirSync(places), readdirSync(join(places, '..'))]).toEqual([['view'], ['places']])
      for (const { name, path } of view.files) {
        expect(path.startsWith(`${places}/view/`)).toBe(true)
        expect([name, readFileSync(path).equals(Buffer.from(SECRET))]).toEqual([name, false])
      }
    }
    expect(statSync(join(daemon.folder, 'in/secret.safetensors')).size).toBe(SECRET.length)
  }
)
