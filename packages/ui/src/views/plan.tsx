import { useState } from 'preact/hooks'
import type { JudgedPlan } from '../bridge.ts'
import { useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.get

type Fits = ReadonlyMap<string, JudgedPlan['fits'][number]>

/** The quants that the source names; else the largest that fits, as the terminal advises. */
function firstChoice({ artifacts, fits, source }: JudgedPlan): readonly string[] {
  const named = new Set(source.quants?.map((quant) => quant.toLowerCase()))
  if (named.size > 0) return artifacts.map(({ quant }) => quant).filter((quant) => named.has(quant.toLowerCase()))
  if (artifacts.length === 1) return [artifacts[0]!.quant]
  const best = fits.filter(({ fit }) => fit === 'fits').sort((a, b) => b.needBytes - a.needBytes)[0]
  return best === undefined ? [] : [best.quant]
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
  const start = (): Promise<unknown> =>
    attempt(
      () =>
        bridge.importHf({
          repo,
          revision: plan.commit,
          ...(revision !== undefined && { follows: revision }),
          quants: [...chosen],
          names: 'normalized',
          aux: ['one'],
          malformed: 'refuse'
        }),
      started
    )
  return (
    <section class="card slim" aria-label={T.plan(plan.repo)}>
      <h2>{T.plan(plan.repo)}</h2>
      <p class="hint">
        {plan.license !== undefined && T.license(plan.license)} {plan.gated === true && T.needsAccess}
      </p>
      {plan.warnings.map((warning) => (
        <p key={warning} class="hint">
          {warning}
        </p>
      ))}
      <QuantTable artifacts={artifacts} fits={fitsOf(plan)} chosen={chosen} onToggle={toggle} />
      <footer>
        <Button
          text={chosen.size === 0 ? T.chooseOne : fetchBytes === 0 ? T.start : T.startSize(formatBytes(fetchBytes))}
          look="main"
          isOff={chosen.size === 0}
          does={start}
        />
        <a href="#jobs">{TEXTS.views.jobs}</a>
      </footer>
    </section>
  )
}

const fitsOf = ({ fits }: JudgedPlan): Fits => new Map(fits.map((fit) => [fit.quant, fit]))

interface QuantTableProps {
  readonly artifacts: JudgedPlan['artifacts']
  readonly fits: Fits
  readonly chosen: ReadonlySet<string>
  readonly onToggle: (quant: string) => void
}

function QuantTable({ artifacts, fits, chosen, onToggle }: QuantTableProps) {
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
