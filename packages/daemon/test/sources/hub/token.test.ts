import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../support/daemon.ts'
import { gguf } from '../../support/models.ts'
import { spawnDaemon } from '../../support/process.ts'

const TOKEN = 'hf_thisIsTheSecretOfThisTest'

test('the token is in no log line, no answer and no file, whether the hub takes it or not', {
  timeout: 60_000
}, async () => {
  for (const tokens of [[TOKEN], ['hf_another']]) {
    const hub = await startFakeHub({
      tokens,
      repos: [{ id: 'Org/Private', private: true, files: [{ path: 'm-q8_0.gguf', content: gguf(200_000, 1) }] }]
    })
    onTestFinished(() => hub.close())
    const folder = temporaryFolder()
    const daemon = await spawnDaemon({ folder, env: { HF_ENDPOINT: hub.endpoint, SVC_HF_TOKEN: TOKEN } })
    const accepted = await daemon.post('/v1/import/hf', { repo: 'Org/Private' })
    const answers: unknown[] = [accepted.body]
    if (accepted.status === 201) answers.push(await daemon.finished(accepted.body))
    const right = tokens[0] === TOKEN
    expect(JSON.stringify(answers).includes('"done"')).toBe(right)
    for (const path of ['/v1/status', '/v1/jobs', '/v1/models', '/v1/plan?repo=Org%2FPrivate'])
      answers.push((await daemon.get(path)).body)
    daemon.agent.destroy()
    daemon.child.kill('SIGTERM')
    await daemon.ended
    expect(hub.requests.some(({ headers }) => headers.authorization === `Bearer ${TOKEN}`)).toBe(true)
    expect(JSON.stringify(answers)).not.toContain(TOKEN)
    expect(JSON.stringify(daemon.log)).not.toContain(TOKEN)
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
    for (const file of files.filter((path) => statSync(path).isFile()))
      expect([file, readFileSync(file).includes(TOKEN)]).toEqual([file, false])
  }
})
