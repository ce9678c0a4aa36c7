import { workerData } from 'node:worker_threads'
import { loadFilePort } from '@svc/internal-files'
import { serveCalls, yieldToOthers } from '@svc/internal-workers'
import { commitParts } from './commit.ts'
import { CasError, threadErrors } from './errors.ts'
import { HashSession } from './hash-session.ts'
import { layoutOf } from './layout.ts'
import { runNamed } from './named-run.ts'
import type { SessionResult, ThreadData, ThreadOperations } from './thread-protocol.ts'

// The code that runs in a `HashThread`. Operations of different sessions interleave; messages of one session are
// answered in order, because the sender awaits every answer that matters before it sends the next message.

yieldToOthers((workerData as ThreadData).nice)

const loading = loadFilePort((workerData as ThreadData).filePort)
const sessions = new Map<number, HashSession>()

function sessionOf(session: number): HashSession {
  const found = sessions.get(session)
  if (found === undefined) throw new CasError('E_THREAD', `no session ${session} in this thread`)
  return found
}

function finish(id: number): SessionResult {
  const result = sessionOf(id).finish()
  sessions.delete(id)
  return result
}

serveCalls<ThreadOperations>(
  {
    begin: async ({ session, spec, from }) => {
      sessions.set(session, await HashSession.begin(await loading, spec, from))
    },
    feed: ({ session, block, length }) => sessionOf(session).feed(new Uint8Array(block, 0, length)),
    pump: async ({ session, fd, start, end }) => ({ bytes: await sessionOf(session).pump({ fd, start, end }) }),
    run: async ({ session, spec, fd, forward, progress: wanted }, { progress }) => {
      const begun = await HashSession.begin(await loading, spec)
      sessions.set(session, begun)
      await begun.pump({ fd, forward, onProgress: wanted ? progress : undefined })
      return finish(session)
    },
    finish: ({ session }) => finish(session),
    drop: async ({ session }) => {
      const found = sessions.get(session)
      sessions.delete(session)
      await found?.drop()
    },
    runNamed: async (run) => runNamed(await loading, run),
    commit: async ({ root, items }) => commitParts(await loading, layoutOf(root), items)
  },
  { errors: threadErrors }
)
