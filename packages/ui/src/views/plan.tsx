import { useState } from 'preact/hooks'
import { BridgeError, type JudgedPlan } from '../bridge.ts'
import { useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { RefusalView } from './refusal.tsx'

const T = TEXTS.get

/** The quants that the source names; else the one that is recommended. */
function firstChoice({ artifacts, recommended, source }: JudgedPlan): readonly string[] {
  const named = new Set(source.quants?.map((quant) => quant.toLowerCase()))
  if (named.size > 0) return artifacts.map(({ quant }) => quant).filter((quant) => named.has(quant.toLowerCase()))
  if (artifacts.length === 1) return [artifacts[0]!.quant]
  return recommended === undefined ? [] : [recommended]
}

export function PlanView({ plan }: { readonly plan: JudgedPlan }) {
  const { attempt, bridge } = useStore()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(firstChoice(plan)))
  const artifacts = [...plan.artifacts].sort((a, b) => a.bytes - b.bytes)
  const fetchBytes = artifacts
    .filter(({ quant }) => chosen.has(quant))
    .reduce((sum, { bytes, bytesPresent }) => sum + bytes - bytesPresent, 0)
  const toggle = (quant: string): void =>
    setChosen(new Set(chosen.has(quant) ? [...chosen].filter((each) => each !== quant) : [...chosen, quant]))
  const { repo, revision } = plan.source
  const [refused, setRefused] = useState<BridgeError>()
  const start = (): Promise<unknown> =>
    attempt(async () => {
      setRefused(undefined)
      try {
        return await bridge.importHf({
          repo,
          revision: plan.commit,
          ...(revision !== undefined && { follows: revision }),
          quants: [...chosen],
          names: 'normalized',
          aux: ['one'],
          malformed: 'refuse'
        })
      } catch (error) {
        if (error instanceof BridgeError) setRefused(error)
        throw error
      }
    }, started)
  return (
    <section class="card slim" aria-label={T.plan(plan.repo)}>
      <h2>{T.plan(plan.repo)}</h2>
      <p class="hint">
        {plan.license !== undefined && T.license(plan.license)} {plan.gated === true && T.needsAccess}
      </p>
      {plan.advice !== undefined && <p class="advice">{T.advice(plan.advice)}</p>}
      {plan.warnings.map((warning) => (
        <p key={warning} class="hint">
          {warning}
        </p>
      ))}
      <QuantTable plan={plan} artifacts={artifacts} chosen={chosen} onToggle={toggle} />
      <footer>
        <Button
          text={chosen.size === 0 ? T.chooseOne : fetchBytes === 0 ? T.start : T.startSize(formatBytes(fetchBytes))}
          look="main"
          isOff={chosen.size === 0}
          does={start}
        />
        <a href="#jobs">{TEXTS.views.jobs}</a>
      </footer>
      {refused !== undefined && <RefusalView error={refused} words={plan.repo} onAgain={start} />}
    </section>
  )
}

interface QuantTableProps {
  readonly plan: JudgedPlan
  readonly artifacts: JudgedPlan['artifacts']
  readonly chosen: ReadonlySet<string>
  readonly onToggle: (quant: string) => void
}

function QuantTable({ plan, artifacts, chosen, onToggle }: QuantTableProps) {
  const fits = new Map(plan.fits.map((fit) => [fit.quant, fit]))
  return (
    <table class="quants">
      <thead>
        <tr>
          <th scope="col">{T.planColumns.quant}</th>
          <th scope="col" class="number">
            {T.planColumns.size}
          </th>
          <th scope="col" class="number wide">
            {T.planColumns.memory}
          </th>
          <th scope="col">{T.planColumns.fit}</th>
          <th scope="col" class="number">
            {T.planColumns.here}
          </th>
        </tr>
      </thead>
      <tbody>
        {artifacts.map(({ quant, upstream, bytes, bytesPresent }) => {
          const judged = fits.get(quant)
          return (
            <tr key={quant}>
              <th scope="row">
                <label>
                  <input type="checkbox" checked={chosen.has(quant)} onChange={() => onToggle(quant)} /> {quant}
                  {upstream !== undefined && <small> {upstream}</small>}
                  {quant === plan.recommended && <span class="tag good">{T.recommended}</span>}
                </label>
              </th>
              <td class="number">{formatBytes(bytes)}</td>
              <td class="number wide">{judged === undefined ? '' : formatBytes(judged.needBytes)}</td>
              <td>{judged !== undefined && <span class={`mark ${judged.fit}`}>{T.fit[judged.fit]}</span>}</td>
              <td class="number">
                {bytesPresent === 0 ? '' : bytesPresent >= bytes ? T.allHere : formatBytes(bytesPresent)}
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
