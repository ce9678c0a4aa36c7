import { getEventListeners } from 'node:events'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { HubJobs } from '../../src/jobs/hub-jobs.ts'
import { Node, pinned, weights } from '../swarm/nodes.ts'

// Node keeps a composite signal that is listened to for as long as its sources live, and the daemon's own signals live as long as it does:
// a listener that is left behind keeps the whole job for ever.
test('finished work leaves no listener on a composite signal', async () => {
  const made: AbortSignal[] = []
  const any = AbortSignal.any
  const spy = vi.spyOn(AbortSignal, 'any').mockImplementation((signals) => {
    const signal = any(signals)
    made.push(signal)
    return signal
  })
  onTestFinished(() => spy.mockRestore())
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({ id: 'Org/Model', files: [{ path: 'm-q8_0.gguf', content: weights(300_000, 3) }] })
  const seeder = await Node.start()
  const share = await seeder.publish({ 'm-q8_0.gguf': weights(3_000_000, 4) })
  const node = await Node.start({
    more: {
      fileConfig: { hub: { endpoint: hub.endpoint }, swarm: { dht: false, peer_addr: '127.0.0.1:0' } },
      networks: {
        swarm: (context) => openSwarm(context),
        hub: (context) =>
          new HubJobs(context, {
            limits: { rangeBytes: 64 << 10, writeBytes: 16 << 10, smallFileBytes: 32 << 10 }
          })
      }
    }
  })
  const { client } = node
  await node.importFiles({ 'm-q4_0.gguf': weights(400_000, 5) }, 'a/b')
  const jobs = [
    await client.importHf({ repo: 'Org/Model' }),
    await client.importBt(pinned(share)),
    await client.verify({ target: 'all' }),
    await client.gc({ graceSeconds: 0 })
  ]
  for (const job of jobs) expect(await node.done(job)).toMatchObject({ state: 'done' })
  expect(await node.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  expect(made.length).toBeGreaterThan(10)
  const left = (): number => made.filter((signal) => getEventListeners(signal, 'abort').length > 0).length
  // work beside the responses ends a moment after them
  await expect.poll(left).toBe(0)
})
