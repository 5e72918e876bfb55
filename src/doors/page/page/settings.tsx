import { useEffect, useMemo, useState } from 'preact/hooks'
import { encode } from 'uqr'
import { follow, nameOfDevice, newIdentity, post, postStream, Refused } from './client.ts'
import { chooseTheme, chosenTheme, maySteer, me, type Theme } from './model.ts'
import { Field, Outcome, Reading, type Saying, textIn, useRead, useSaying } from './parts.tsx'
import { TEXTS } from './texts.ts'

/** What is set for this page: how it looks, who may open it, and whether it notifies. */
export function SettingsPage() {
  return (
    <>
      <h1>{TEXTS.settings}</h1>
      <ThemeChoice />
      <Notifications />
      <Devices />
      <p class="quiet">{TEXTS.version(me.value?.version ?? '')}</p>
    </>
  )
}

function ThemeChoice() {
  const [theme, setTheme] = useState(chosenTheme())
  return (
    <fieldset class="choices">
      <legend>Theme</legend>
      {(Object.keys(TEXTS.themes) as Theme[]).map(each => (
        <label key={each} class="check">
          <input
            type="radio"
            name="theme"
            checked={theme === each}
            onChange={() => {
              chooseTheme(each)
              setTheme(each)
            }}
          />{' '}
          {TEXTS.themes[each]}
        </label>
      ))}
    </fieldset>
  )
}

function Notifications() {
  const said = useSaying()
  const [isOn, setOn] = useState<boolean | null>(null)
  const key = me.value?.push?.publicKey ?? null
  useEffect(() => {
    void isPushOn().then(setOn)
  }, [])
  return (
    <section aria-label={TEXTS.notifications}>
      <h2>{TEXTS.notifications}</h2>
      {!isPushPossible() || key === null ? (
        <p class="quiet">
          This browser cannot show notifications here. Use https, or this machine. On an iPhone, add the page to the
          home screen.
        </p>
      ) : (
        <label class="check">
          <input
            type="checkbox"
            checked={isOn === true}
            disabled={isOn === null || said.isBusy.value}
            onChange={event => {
              const wanted = event.currentTarget.checked
              void said.do(async () => {
                setOn(await switchPush(wanted, key))
                return null
              })
            }}
          />{' '}
          Notify this device when a session needs me or has ended
        </label>
      )}
      <p class="quiet">
        Sent through your browser vendor’s push service, encrypted, without project content. Off until you switch it on.
      </p>
      <Outcome of={said} />
    </section>
  )
}

/** Whether this browser shows notifications of this page: in a secure context alone. */
function isPushPossible(): boolean {
  return isSecureContext && 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window
}

/** Whether this device is told. */
async function isPushOn(): Promise<boolean> {
  if (!isPushPossible()) return false
  const registration = await navigator.serviceWorker.getRegistration()
  return (await registration?.pushManager.getSubscription()) != null
}

/** Switches notifications on or off for this device; resolves with how they are now. Rejects with `Refused`. */
async function switchPush(wanted: boolean, publicKey: string): Promise<boolean> {
  const registration = await navigator.serviceWorker.register('/sw.js')
  await navigator.serviceWorker.ready
  const known = await registration.pushManager.getSubscription()
  if (!wanted) {
    await post('push/off', {})
    await known?.unsubscribe()
    return false
  }
  if ((await Notification.requestPermission()) !== 'granted') throw new Refused({ problem: TEXTS.pushDenied })
  const options = { userVisibleOnly: true, applicationServerKey: bytesOf(publicKey) }
  const subscription = await registration.pushManager.subscribe(options).catch((error: unknown) => {
    throw new Refused({ problem: error instanceof Error ? error.message : TEXTS.pushDenied })
  })
  const { endpoint, keys } = subscription.toJSON()
  await post('push/on', { subscription: { endpoint, keys } })
  return true
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, letter => letter.charCodeAt(0))
}

interface Device {
  id: string
  name: string
  right: 'look' | 'steer'
  lastSeenAt: string
}

function Devices() {
  const { value, problem, again } = useRead<{ devices: readonly Device[] }>('devices')
  const said = useSaying()
  if (value === null) return <Reading problem={problem} />
  const end = (id: string) =>
    said.do(async () => {
      await post(`devices/${id}/end`, {})
      again()
      return null
    })
  return (
    <section aria-label={TEXTS.devices}>
      <h2>{TEXTS.devices}</h2>
      <ul class="devices">
        {value.devices.map(({ id, name, right, lastSeenAt }) => (
          <li key={id} class="device">
            <span>
              <b>{name}</b> {id === me.value?.device.id ? '(this device)' : ''}{' '}
              <span class="quiet">
                {TEXTS.right[right]} · {`seen ${new Date(lastSeenAt).toLocaleString()}`}
              </span>
            </span>
            {maySteer() && (
              <button type="button" onClick={() => void end(id)} aria-label={`${TEXTS.end} ${name}`}>
                {TEXTS.end}
              </button>
            )}
          </li>
        ))}
      </ul>
      <Outcome of={said} />
      {maySteer() && (
        <>
          <OneMoreLink />
          <Pairing done={again} />
        </>
      )}
    </section>
  )
}

function OneMoreLink() {
  const said = useSaying()
  const [link, setLink] = useState<string | null>(null)
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const box = event.currentTarget.elements.namedItem('look')
        const right = box instanceof HTMLInputElement && box.checked ? 'look' : 'steer'
        void said.do(async () => {
          setLink((await post<{ link: string }>('link', { right })).link)
          return 'Works once, within an hour.'
        })
      }}
    >
      <h3>Add a device</h3>
      <label class="check">
        <input type="checkbox" name="look" /> view only
      </label>
      <button type="submit">Make a link</button>
      <Outcome of={said} />
      {link !== null && (
        <>
          <p class="path">{link}</p>
          <QrCode text={link} />
        </>
      )}
    </form>
  )
}

function QrCode({ text }: { text: string }) {
  const { data, size } = useMemo(() => encode(text, { ecc: 'L', border: 2 }), [text])
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : []))).join('')
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={text}>
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

type State =
  | { state: 'waiting' }
  | { state: 'asking'; name: string }
  | { state: 'over'; how: keyof typeof TEXTS.pairEnd }

function Pairing({ done }: { done: () => void }) {
  const said = useSaying()
  const [pairing, setPairing] = useState<{ id: string; code: string } | null>(null)
  return (
    <section aria-label={TEXTS.pair}>
      <button
        type="button"
        onClick={() =>
          void said.do(async () => {
            setPairing(await post<{ id: string; code: string }>('pairing', {}))
            return null
          })
        }
      >
        {TEXTS.pair}
      </button>
      {pairing !== null && <PairingHost key={pairing.id} {...pairing} said={said} done={done} />}
      <Outcome of={said} />
    </section>
  )
}

function PairingHost({ id, code, said, done }: { id: string; code: string; said: Saying; done: () => void }) {
  const [state, setState] = useState<State>({ state: 'waiting' })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a code is followed once, whoever is told
  useEffect(() => {
    const over = new AbortController()
    void follow<State>(
      () => `pairing/${id}`,
      ({ data }) => {
        setState(data)
        if (data.state !== 'over') return
        over.abort()
        done()
      },
      over.signal,
    )
    return () => over.abort()
  }, [id])
  const answer = (way: string, body: object) =>
    said.do(async () => {
      await post(`pairing/${id}/${way}`, body)
      return null
    })
  if (state.state === 'over') return <p role="status">{TEXTS.pairEnd[state.how]}</p>
  if (state.state === 'waiting')
    return (
      <p>
        Type this code on the new device within five minutes:{' '}
        <strong class="code">{`${code.slice(0, 4)} ${code.slice(4)}`}</strong>
      </p>
    )
  return (
    <div role="alertdialog" aria-label={TEXTS.pairAsks(state.name)}>
      <p>{TEXTS.pairAsks(state.name)}</p>
      <div class="choices">
        <button type="button" class="primary" onClick={() => void answer('confirm', { right: 'steer' })}>
          Full control
        </button>
        <button type="button" onClick={() => void answer('confirm', { right: 'look' })}>
          View only
        </button>
        <button type="button" onClick={() => void answer('refuse', {})}>
          Refuse
        </button>
      </div>
    </div>
  )
}

interface Asked {
  state: 'asked' | 'in' | 'refused'
  /** The id under which it is in. */
  device?: string
  problem?: string
}

/** What a device sees that has no key: how it gets one. */
export function EnterPage() {
  const said = useSaying()
  const pair = (code: string) =>
    said.do(async () => {
      let refused: string | null = null
      let device: string | null = null
      const { publicKey, keep } = await newIdentity()
      await postStream<Asked>(
        'pair',
        { code, name: nameOfDevice(), publicKey },
        ({ data }) => {
          if (data.state === 'asked') said.say(TEXTS.enter.asked)
          if (data.state === 'refused') refused = data.problem ?? ''
          device = data.device ?? device
        },
        new AbortController().signal,
      )
      if (device !== null) await keep(device)
      else throw new Refused({ problem: refused ?? TEXTS.isCut })
      return null
    })
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        void pair(textIn(event.currentTarget, 'code'))
      }}
    >
      <h1>{TEXTS.enter.title}</h1>
      <p>{TEXTS.enter.byLink}</p>
      <p>{TEXTS.enter.byCode}</p>
      <Field label={TEXTS.enter.code}>
        <input name="code" inputMode="numeric" autocomplete="one-time-code" required />
      </Field>
      <button type="submit" class="primary" disabled={said.isBusy.value}>
        {TEXTS.enter.send}
      </button>
      <Outcome of={said} />
    </form>
  )
}
