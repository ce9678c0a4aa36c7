import { startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { expect, onTestFinished, test } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { testDaemon } from '../support/daemon.ts'

test('DELETE of a job aborts only its work, and the next attempt succeeds', async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({ id: 'org/plain', files: [{ path: 'm-q8_0.gguf', content: { seed: 1, sizeBytes: 3_000_000 } }] })
  const fileConfig = { hub: { endpoint: hub.endpoint }, swarm: { enabled: false } }
  const api = await testDaemon({ fileConfig, networks: BUILTIN_NETWORKS })
  hub.setFaults(scriptedFaults([{ stage: 'cdn', fault: { kind: 'stall', afterBytes: 1_000_000 } }]))
  const { body: job } = await api.post('/v1/import/hf', { repo: 'org/plain' })
  await expect.poll(async () => (await api.get(`/v1/jobs/${job.id}`)).body.state).not.toBe('waiting')

  const cancelled = await api.call('DELETE', `/v1/jobs/${job.id}`)
  expect([cancelled.status, cancelled.body.state, cancelled.body.error.code]).toEqual([200, 'failed', 'E_ABORTED'])
  expect((await api.get(`/v1/jobs/${job.id}`)).body).toEqual(cancelled.body)
  // it is over: nothing changes it any more
  expect((await api.call('DELETE', `/v1/jobs/${job.id}`)).body).toEqual(cancelled.body)
  expect((await api.get('/v1/models')).body.namespaces).toEqual([])

  hub.setFaults(undefined)
  const again = await api.finished((await api.post('/v1/import/hf', { repo: 'org/plain' })).body)
  expect(again.state).toBe('done')
  expect((await api.call('DELETE', `/v1/jobs/${again.id}`)).body.state).toBe('done')
  expect((await api.call('DELETE', '/v1/jobs/abc')).body.error.code).toBe('E_NOT_FOUND')
})
