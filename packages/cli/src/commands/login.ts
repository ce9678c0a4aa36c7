import { mkdir, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Readable } from 'node:stream'
import { hubTokenFile } from '@svc/client/protocol'
import { ifAbsent } from '@svc/internal-errors'
import { nodeFilePort, replaceFile } from '@svc/internal-files'
import { CliError, usage } from '../errors.ts'
import { canAsk, saysYes } from '../questions/question.ts'
import type { Session } from '../session.ts'

interface LoginOptions {
  /** Replaces a token that another tool may have stored. */
  readonly replace?: boolean
  /** False stores the token without asking the hub. */
  readonly check?: boolean
}

/**
 * `svc login hf`: stores a token in the file of the hub's own client, which the daemon reads at each import. Stores none
 * that the hub rejects, and replaces another one only if told.
 */
export async function login(session: Session, _hub: string, { replace, check }: LoginOptions): Promise<void> {
  const file = fileOf(session)
  const token = (await (canAsk(session) ? hidden(session, 'Token of the hub: ') : firstLine(session))).trim()
  const mayReplace = async (what: string): Promise<boolean> =>
    replace === true || (canAsk(session) && saysYes(session, `${what}. Replace it? `))
  const { account } = await storeToken(session, token, { check: check !== false, mayReplace })
  if (session.json) return session.document({ ...account, file })
  session.note(`stored in ${file}${account?.name === undefined ? '' : `: the token of ${account.name}`}`)
  if (account?.variable !== undefined)
    session.note(`warning: the daemon uses ${account.variable} of its environment instead, until that is unset`)
  else if (account !== undefined && account.file !== file)
    session.note(`warning: the daemon does not read that file, but ${account.file ?? 'only SVC_HF_TOKEN'}`)
  else session.note('the daemon reads it at the next import')
}

interface Storing {
  /** Whether the hub is asked first. */
  readonly check: boolean
  /** Of another token, which `what` names. */
  readonly mayReplace: (what: string) => Promise<boolean>
}

/** Stores a token that the hub accepts. @throws CliError `E_NAME_TAKEN` for another one that stays; ClientError */
export async function storeToken(session: Session, token: string, { check, mayReplace }: Storing) {
  const file = fileOf(session)
  if (!/^[\x21-\x7e]{1,4000}$/.test(token))
    throw usage('the input is not a token', 'paste one line from Settings, Access Tokens of the hub')
  const account = check ? await session.client.hubAccount({ token }) : undefined
  const before = (await ifAbsentText(file))?.trim() ?? ''
  const what = `${file} has another token, which the hub's own client uses as well`
  if (before !== '' && before !== token && !(await mayReplace(what)))
    throw new CliError('usage', `${what}; it was not replaced`, {
      code: 'E_NAME_TAKEN',
      hint: 'svc login hf --replace, or SVC_HF_TOKEN in the environment of the daemon'
    })
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await replaceFile(nodeFilePort, file, Buffer.from(token))
  return { account, file }
}

/** The text of a file; undefined if there is none. @throws the error of the disk */
const ifAbsentText = (file: string): Promise<string | undefined> =>
  readFile(file, 'latin1').catch((error: unknown) => void ifAbsent(error))

export async function logout(session: Session): Promise<void> {
  const file = fileOf(session)
  const wasThere = (await rm(file).then(() => true, ifAbsent)) === true
  if (session.json) return session.document({ file, removed: wasThere })
  session.note(wasThere ? `removed ${file}` : `there is no token in ${file}`)
}

function fileOf({ terminal }: Session): string {
  const file = hubTokenFile(terminal.env)
  if (file === undefined) throw usage('the home folder is unknown', 'set HOME or HF_HOME')
  return file
}

async function firstLine({ terminal }: Session): Promise<string> {
  let text = ''
  for await (const chunk of terminal.stdin ?? []) {
    text += String(chunk)
    if (text.includes('\n') || text.length > 4096) break
  }
  return text.split('\n', 1)[0]!
}

type RawInput = Readable & { setRawMode?(isRaw: boolean): unknown }

/** Asks without showing what is typed. @throws CliError with exit code 130 on Ctrl-C */
async function hidden({ terminal }: Session, question: string): Promise<string> {
  const stdin: RawInput = terminal.stdin!
  terminal.stderr.question(question)
  stdin.setRawMode?.(true)
  let typed = ''
  try {
    for await (const chunk of stdin.iterator({ destroyOnReturn: false })) {
      const keys = [...String(chunk)]
      for (const [i, key] of keys.entries()) {
        if (key === '\r' || key === '\n' || key === '\u0004') {
          // the answer to the next question may have arrived already
          const rest = keys.slice(i + 1).join('')
          if (rest !== '') stdin.unshift(rest)
          return typed
        }
        if (key === '\u0003')
          throw new CliError('interrupted', 'interrupted; nothing was stored', { code: 'E_INTERRUPTED' })
        typed = key === '\u007f' || key === '\b' ? typed.slice(0, -1) : typed + key
      }
    }
    return typed
  } finally {
    stdin.setRawMode?.(false)
    terminal.stderr.line()
  }
}
