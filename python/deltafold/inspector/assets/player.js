// Position in time of all recordings of the page, and playing.
//
// In: the times of the events.  Out: the last event that was whole at the position.
//
// Laws: playing follows the clock of the browser, so that a slow frame does not shift what follows.
// Recordings without times are played at a fixed rate, and the page says so.

const SECONDS_WITHOUT_TIMES = 0.05;

/** Times of the events of one recording. */
export class Track {
  constructor(recording) {
    this.recording = recording;
    this.timed = recording.timed;
    this.count = recording.texts.length;
    this.seconds = recording.timed
      ? recording.seconds
      : recording.seconds.map((_, index) => index * SECONDS_WITHOUT_TIMES);
    this.shown = this.count - 1;
  }

  get duration() {
    return this.seconds[this.count - 1];
  }

  /** Returns the last event at or before a time, -1 before the first one. */
  at(seconds) {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.seconds[middle] <= seconds) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

export class Player {
  constructor(tracks, changed) {
    this.tracks = tracks;
    this.changed = changed;
    this.duration = Math.max(...tracks.map((track) => track.duration));
    this.seconds = this.duration;
    this.speed = 1;
    this.playing = false;
  }

  /** Moves every recording to a time. */
  seek(seconds) {
    this.seconds = Math.min(this.duration, Math.max(0, seconds));
    for (const track of this.tracks) track.shown = track.at(this.seconds);
    this.begin();
    this.changed();
  }

  /** Moves one recording to an event, and the others to its time. */
  seekEvent(track, event) {
    const index = Math.min(track.count - 1, Math.max(0, event));
    this.seconds = track.seconds[index];
    for (const other of this.tracks) other.shown = other.at(this.seconds);
    track.shown = index;
    this.begin();
    this.changed();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    this.playing = true;
    if (this.seconds >= this.duration) this.seek(0);
    this.begin();
    this.changed();
    requestAnimationFrame((now) => this.frame(now));
  }

  pause() {
    this.playing = false;
    this.changed();
  }

  setSpeed(speed) {
    this.speed = speed;
    this.begin();
    this.changed();
  }

  begin() {
    this.from = this.seconds;
    this.began = performance.now();
  }

  frame(now) {
    if (!this.playing) return;
    // The time of the frame can be before that of `begin`.
    const passed = (Math.max(now, this.began) - this.began) / 1000;
    this.seconds = Math.min(this.duration, this.from + passed * this.speed);
    for (const track of this.tracks) track.shown = Math.max(track.at(this.seconds), -1);
    if (this.seconds >= this.duration) this.playing = false;
    this.changed();
    if (this.playing) requestAnimationFrame((next) => this.frame(next));
  }
}
