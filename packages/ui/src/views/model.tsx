import type { Job, WhyResult } from '@svc/client/protocol'
import type { ComponentProps } from 'preact'
import { useState } from 'preact/hooks'
import type { ModelContents } from '../bridge.ts'
import { nowMs } from '../clock.ts'
import { useAnswer, useStore } from '../context.ts'
import { formatBytes, formatCount, formatSince } from '../format.ts'
import { type ModelRow, stateOf } from '../model-rows.ts'
import { Button } from '../parts/button.tsx'
import { Copyable, copyText } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { FactList } from '../parts/facts.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { Remedy } from './remedy.tsx'
import { RemoveDialog } from './remove.tsx'
import { ShareDialog } from './share.tsx'

const T = TEXTS.model

interface ModelProps {
  readonly row: ModelRow
  readonly onClose: () => void
}

export function ModelDialog({ row, onClose }: ModelProps) {
  const { bridge } = useStore()
  const why = useAnswer(() => bridge.why(row.ref), [row.ref, row.member.private])
  const { commands = [] } = useAnswer(() => bridge.commands(row.ref), [row.ref]) ?? {}
  const facts = useAnswer(() => bridge.facts(row.ref), [row.member.manifest, row.member.complete])
  const [step, setStep] = useState<'share' | 'remove'>()
  const back = (): void => setStep(undefined)
  return (
    <Dialog title={row.ref} isSheet onClose={onClose}>
      <Remedy row={row} />
      <ModelFactList row={row} facts={facts} />
      <Actions row={row} onShare={() => setStep('share')} onRemove={() => setStep('remove')} />
      {commands.length > 0 && <h3>{T.commands}</h3>}
      {commands.map(({ runtime, command }) => (
        <Copyable key={`${runtime} ${command}`} label={runtime} text={command} />
      ))}
      {why !== undefined && <Doors why={why} />}
      {facts?.caution !== undefined && <p class="warn">{facts.caution}</p>}
      {facts !== undefined && <Contents facts={facts} />}
      <h3>{T.details}</h3>
      <Copyable label={T.facts.manifest} text={row.member.manifest} />
      {step === 'share' && <ShareDialog reference={row.ref} onClose={back} />}
      {step === 'remove' && <RemoveDialog references={[row.ref]} onClose={back} onRemoved={onClose} />}
    </Dialog>
  )
}

interface ModelFactsProps {
  readonly row: ModelRow
  readonly facts: ModelContents | undefined
}

/** GGUF or safetensors, and what beside the weights makes it more than text. */
function formatOf({ files }: ModelContents): string {
  const kinds = new Set(files.map(({ kind, role }) => role ?? kind))
  return Object.entries(T.kinds)
    .filter(([kind]) => kinds.has(kind) || files.some((file) => file.kind === kind))
    .map(([, text]) => text)
    .join(', ')
}

function ModelFactList({ row: { member, sharing, reason }, facts }: ModelFactsProps) {
  const { origin } = member
  const from = [origin?.repo ?? origin?.kind ?? '', origin?.revision ?? ''].filter((word) => word !== '').join(' @ ')
  return (
    <FactList
      facts={[
        [T.facts.size, formatBytes(member.sizeBytes)],
        [T.facts.format, facts && formatOf(facts)],
        [T.facts.family, facts?.family],
        [T.facts.parameters, facts?.parameters === undefined ? undefined : formatCount(facts.parameters)],
        [T.facts.context, facts?.contextTokens === undefined ? undefined : T.tokens(facts.contextTokens)],
        [T.facts.template, facts?.template],
        [T.facts.license, facts?.license],
        [T.facts.state, stateOf(member)],
        [T.facts.sharing, [TEXTS.models.sharing[sharing], reason].filter((word) => word !== '').join(': ')],
        [T.facts.used, member.lastUsedAt === undefined ? T.never : formatSince(member.lastUsedAt, nowMs())],
        [T.facts.imported, formatSince(member.importedAt, nowMs())],
        [T.facts.origin, from],
        [T.facts.companions, member.companions === undefined ? T.noCompanions : T.hasCompanions]
      ]}
    />
  )
}

interface ActionsProps {
  readonly row: ModelRow
  readonly onShare: () => void
  readonly onRemove: () => void
}

function Actions({ row: { ref, member }, onShare, onRemove }: ActionsProps) {
  const { attempt, bridge, notice } = useStore()
  const { complete, private: isPrivate, pinned: isPinned = false } = member
  const copyPath = async (): Promise<void> => {
    const answer = await attempt(() => bridge.path(ref))
    if (answer !== undefined) await copyText(answer.path, notice)
  }
  const open = (): Promise<unknown> =>
    attempt(
      () => bridge.openFolder(ref),
      ({ opened, folder }) => (opened ? T.opened : T.notOpened(folder))
    )
  const start = (work: () => Promise<Job>) => () => attempt(work, started)
  const turn = (work: () => Promise<object>, said: string) => () => attempt(work, () => said)
  const actions: readonly ComponentProps<typeof Button>[] = [
    { text: T.openFolder, does: open, isOff: !complete },
    { text: T.copyPath, does: copyPath, isOff: !complete },
    { text: T.share, does: onShare, isOff: !complete },
    { text: T.verify, does: start(() => bridge.verify(ref)) },
    isPrivate
      ? { text: T.makePublic, does: turn(() => bridge.setPrivate(ref, false), T.nowPublic) }
      : { text: T.keepPrivate, does: turn(() => bridge.setPrivate(ref, true), T.nowPrivate) },
    isPinned
      ? { text: T.unpin, does: turn(() => bridge.setPinned(ref, false), T.nowUnpinned) }
      : { text: T.pin, does: turn(() => bridge.setPinned(ref, true), T.nowPinned) },
    { text: T.evict, does: start(() => bridge.evict(ref)), isOff: isPinned || !complete },
    { text: T.remove, does: onRemove, look: 'danger' }
  ]
  return (
    <div class="actions">
      {actions.map((action) => (
        <Button key={action.text} {...action} />
      ))}
    </div>
  )
}

/** Its files, and what its publisher writes of it. */
function Contents({ facts: { files, card } }: { readonly facts: ModelContents }) {
  return (
    <>
      <details class="files">
        <summary>{T.files(files.length)}</summary>
        <table>
          <tbody>
            {files.map(({ name, kind, role, sizeBytes }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{role === undefined ? kind : `${kind} (${role})`}</td>
                <td class="number">{formatBytes(sizeBytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
      {card !== undefined && (
        <details class="model-card">
          <summary>{T.card}</summary>
          <Markdown text={card} />
        </details>
      )}
    </>
  )
}

/** How others get it, or why they do not. */
function Doors({ why }: { readonly why: WhyResult }) {
  return (
    <>
      <h3>{T.doors}</h3>
      <ul class="doors">
        {why.doors.map(({ door, open, given, withheld }) => (
          <li key={door}>
            <strong>{T.doorNames[door] ?? door}</strong>{' '}
            <span class={`mark ${!open ? 'none' : given ? 'good' : 'warn'}`}>
              {!open ? T.doorClosed : given ? T.doorGiven : T.doorWithheld}
            </span>
            {withheld !== undefined && <span class="hint">{withheld.reason}</span>}
          </li>
        ))}
      </ul>
    </>
  )
}
