import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testDaemon } from '../support/daemon.ts'

test('a folder with twice the limit of files is refused, and other requests are answered meanwhile', async () => {
  const api = await testDaemon()
  const folder = join(api.folder, 'many')
  for (let part = 0; part < 200; part++) {
    mkdirSync(join(folder, String(part)), { recursive: true })
    for (let i = 0; i < 1_000; i++) writeFileSync(join(folder, String(part), String(i)), '')
  }
  const begun = performance.now()
  const answer = api.post('/v1/import/local', { paths: [folder], as: 'me/many' })
  expect((await api.get('/v1/jobs')).status).toBe(200)
  const others = performance.now() - begun
  const { status, body } = await answer
  console.log(
    `200,000 files: ${status} ${body.error?.code} after ${Math.round(performance.now() - begun)} ms, another request ${Math.round(others)} ms`
  )
  expect([status, body.error.code]).toEqual([400, 'E_BAD_REQUEST'])
  expect((await api.get('/v1/jobs')).body.jobs).toEqual([])
})
