import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { SVCD } from '@svc/testkit/programs'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../support/daemon.ts'
import { gguf } from '../../support/models.ts'
import { spawnDaemon } from '../../support/process.ts'

const TOKEN = 'hf_thisIsTheSecretOfThisTest'

const FILE = 'my-token'

test.each([
  ['SVC_HF_TOKEN', { SVC_HF_TOKEN: TOKEN }, TOKEN],
  ['HF_TOKEN', { HF_TOKEN: TOKEN }, TOKEN],
  ['the file of the hub client', {}, TOKEN],
  ['a token that the hub rejects', { HF_TOKEN: TOKEN }, 'hf_another']
])('%s is in no log line, response or file', { timeout: 60_000 }, async (_, given, taken) => {
  const hub = await startFakeHub({
    tokens: [taken],
    repos: [{ id: 'Org/Private', private: true, files: [{ path: 'm-q8_0.gguf', content: gguf(200_000, 1) }] }]
  })
  onTestFinished(() => hub.close())
  const folder = temporaryFolder()
  writeFileSync(join(folder, FILE), TOKEN)
  const env = { HF_ENDPOINT: hub.endpoint, HF_TOKEN_PATH: join(folder, FILE), ...given }
  const flags = ['--root', join(folder, 'root'), '--config', join(folder, 'off.toml')]
  const args = [...flags, '--socket', join(folder, 's.sock'), '--log-level', 'debug']
  const daemon = await spawnDaemon({ folder, args, env })
  const accepted = await daemon.post('/v1/import/hf', { repo: 'Org/Private' })
  const answers: unknown[] = [accepted.body]
  if (accepted.status === 201) answers.push(await daemon.finished(accepted.body))
  expect(JSON.stringify(answers).includes('"done"')).toBe(taken === TOKEN)
  for (const path of ['/v1/status', '/v1/jobs', '/v1/models', '/v1/plan?repo=Org%2FPrivate'])
    answers.push((await daemon.get(path)).body)
  for (const words of [['--check'], ['metrics', '--socket', join(folder, 's.sock')]]) {
    const ran = spawnSync(process.execPath, [...SVCD, ...flags, ...words], {
      env: { ...env, HOME: folder },
      encoding: 'utf8'
    })
    expect(ran.status).toBe(0)
    answers.push(ran.stdout, ran.stderr)
  }
  daemon.agent.destroy()
  daemon.child.kill('SIGTERM')
  await daemon.ended
  expect(hub.requests.some(({ headers }) => headers.authorization === `Bearer ${TOKEN}`)).toBe(true)
  expect(JSON.stringify(answers)).not.toContain(TOKEN)
  expect(JSON.stringify(daemon.log)).not.toContain(TOKEN)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name !== FILE)
  for (const file of files.map((name) => join(folder, name)).filter((path) => statSync(path).isFile()))
    expect([file, readFileSync(file).includes(TOKEN)]).toEqual([file, false])
})
