import { createClient, modelsOf } from '@svc/client'
import { type OwnedModels, openLibrary, readLibrary } from '@svc/library'
import { hubSource } from '@svc/sources/hub'
import { expect, it, onTestFinished } from 'vitest'
import { mergeConfig } from '../../src/config/config.ts'
import { HubJobs } from '../../src/jobs/hub-jobs.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { describeModels, describeReading } from './contract.ts'

async function ownedLibrary(): Promise<{ readonly library: OwnedModels; collect(): Promise<unknown> }> {
  const root = temporaryFolder()
  const library = await openLibrary({ root })
  let isClosed = false
  const close = library.close.bind(library)
  library.close = () => {
    isClosed = true
    return close()
  }
  onTestFinished(() => library.close())
  const collect = async (): Promise<void> => {
    const owner = isClosed ? await openLibrary({ root }) : library
    await owner.collect({ graceMs: 0 })
    if (isClosed) await owner.close()
  }
  return { library, collect }
}

describeModels('a store in this process', async ({ endpoint }) => {
  const { library, collect } = await ownedLibrary()
  return { models: library, collect, hubSource: (repo, options) => hubSource(repo, { ...options, endpoint }) }
})

async function daemonModels(endpoint = 'http://127.0.0.1:1') {
  const folder = temporaryFolder()
  const { running } = await testDaemon({
    folder,
    config: mergeConfig({ swarm: { enabled: false } }, { root: `${folder}/root` }, { HF_ENDPOINT: endpoint }),
    networks: { hub: (context) => new HubJobs(context) }
  })
  const client = createClient({ socketPath: running.socketPath })
  const models = modelsOf(client)
  onTestFinished(() => models.close())
  const collect = async () => client.waitJob(await client.gc({ graceSeconds: 0 }))
  return { models, client, collect }
}

describeModels('a daemon', async ({ endpoint }) => ({ ...(await daemonModels(endpoint)), hubSource }))

describeReading('a store beside its owner', async () => {
  const { library, collect } = await ownedLibrary()
  const reading = await readLibrary({ root: library.root })
  onTestFinished(() => reading.close())
  return { owner: library, reading, collect }
})

describeReading('a store beside the daemon that has it', async () => {
  const { models, client, collect } = await daemonModels()
  const reading = await readLibrary({ root: (await client.status()).root })
  onTestFinished(() => reading.close())
  return { owner: models, reading, collect }
})

it('a description that was not made by its function is for daemons', async () => {
  const { library } = await ownedLibrary()
  const importing = library.import({ kind: 'hub', repo: 'Org/Model' }, 'org/model')
  await expect(importing).rejects.toMatchObject({ code: 'E_INVALID', message: expect.stringContaining('hubSource') })
})

it('a daemon takes no options by which this process would reach a source, and is sent none', async () => {
  const { models } = await daemonModels()
  const source = hubSource('Org/Model', { endpoint: 'http://127.0.0.1:1', token: 'hf_secret' })
  expect(source).toMatchObject({ kind: 'hub', repo: 'Org/Model', inProcessOnly: ['endpoint', 'token'] })
  expect(JSON.stringify(source)).not.toContain('hf_secret')
  await expect(models.import(source, 'org/model')).rejects.toMatchObject({
    code: 'E_BAD_REQUEST',
    message: expect.stringMatching(/^endpoint, token: /)
  })
})
