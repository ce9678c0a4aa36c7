import { dirname } from 'node:path'
import { makeFoldersSync } from '@svc/internal-files'
import { AGENT_LABEL, agentLogPath, agentPath, agentPlist, agentSocketPath, MAX_MAC_SOCKET_BYTES } from './agent.ts'
import { ServiceError } from './errors.ts'
import { contentOf, runProgram, type ServiceManager } from './manager.ts'

/** A launchd agent of the user. `svc` finds its socket by itself; other clients need `SVC_SOCKET`. */
export function launchd(command: readonly string[], home: string, uid: number, env: NodeJS.ProcessEnv): ServiceManager {
  const domain = `gui/${uid}`
  const target = `${domain}/${AGENT_LABEL}`
  const socket = agentSocketPath(home)
  if (Buffer.byteLength(socket) > MAX_MAC_SOCKET_BYTES)
    throw new ServiceError('E_USAGE', `the socket's path is longer than ${MAX_MAC_SOCKET_BYTES} bytes: ${socket}`)
  return {
    name: 'launchd',
    check() {
      const { code, stderr } = runProgram(['launchctl', 'print', domain], env)
      if (code !== 0)
        throw new ServiceError('E_FAILED', `launchd does not answer for this user: ${stderr.trim().split('\n')[0]}`)
      makeFoldersSync(dirname(agentLogPath(home)))
    },
    install: [
      { write: agentPath(home), content: agentPlist(command, home) },
      { run: ['launchctl', 'bootout', target], mayFail: true },
      { run: ['launchctl', 'bootstrap', domain, agentPath(home)] },
      { run: ['launchctl', 'enable', target] }
    ],
    remove: [{ run: ['launchctl', 'bootout', target], mayFail: true }, { remove: agentPath(home) }],
    start: [
      { run: ['launchctl', 'bootstrap', domain, agentPath(home)], mayFail: true },
      { run: ['launchctl', 'kickstart', target] }
    ],
    // it ends with 0, after which the agent does not start it again
    stop: [{ run: ['launchctl', 'kill', 'SIGTERM', target] }],
    state() {
      const { code, stdout } = runProgram(['launchctl', 'print', target], env)
      const state = /^\s*state = (.+)$/m.exec(stdout)?.[1] ?? 'not loaded'
      return {
        installed: contentOf(agentPath(home)) !== undefined,
        enabled: code === 0,
        active: state === 'running',
        detail: `${AGENT_LABEL} is ${state}`
      }
    },
    remarks: [`its log: ${agentLogPath(home)}`, `for other clients: export SVC_SOCKET="${socket}"`]
  }
}
