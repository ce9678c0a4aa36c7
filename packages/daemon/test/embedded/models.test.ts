import { createClient, modelsOf } from '@svc/client'
import { onTestFinished } from 'vitest'
import { openLibrary } from '../../../library/src/embedded/open-library.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { describeModels } from './contract.ts'

describeModels('a store in this process', async () => {
  const library = await openLibrary({ root: temporaryFolder() })
  onTestFinished(() => library.close())
  return library
})

describeModels('a daemon', async () => {
  const { running } = await testDaemon()
  const models = modelsOf(createClient({ socketPath: running.socketPath }))
  onTestFinished(() => models.close())
  return models
})
