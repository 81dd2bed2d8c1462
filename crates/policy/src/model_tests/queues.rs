//! Second Chance, SLRU, 2Q, ARC, S3-FIFO and W-TinyLFU: policies that consist of a few lists.
use super::{Model, agree, evicts_its_candidates, steps};
use crate::frequency_sketch::FrequencySketch;
use crate::{Effect, Request};
use proptest::prelude::*;
use tantalum_base::PageNo;

#[derive(Clone, Copy)]
struct Entry {
    page: PageNo,
    dirty: bool,
    count: u8,
}

/// Lists, each oldest first; the first `cached_lists` of them hold cached pages.
struct Lists {
    lists: Vec<Vec<Entry>>,
    cached_lists: usize,
    frames: usize,
}

impl Lists {
    fn new(lists: usize, cached_lists: usize, frames: usize) -> Lists {
        Lists { lists: vec![Vec::new(); lists], cached_lists, frames }
    }

    /// (list, position).
    fn find(&self, page: PageNo) -> Option<(usize, usize)> {
        let at = |list: &Vec<Entry>| list.iter().position(|entry| entry.page == page);
        self.lists.iter().enumerate().find_map(|(list, entries)| Some((list, at(entries)?)))
    }

    fn len(&self, list: usize) -> usize {
        self.lists[list].len()
    }

    fn is_full(&self) -> bool {
        self.lists[..self.cached_lists].iter().map(Vec::len).sum::<usize>() == self.frames
    }

    fn push(&mut self, list: usize, request: Request) {
        let entry = Entry { page: request.page(), dirty: request.is_write(), count: 0 };
        self.lists[list].push(entry);
    }

    fn move_to(&mut self, (list, at): (usize, usize), to: usize) {
        let entry = self.lists[list].remove(at);
        self.lists[to].push(entry);
    }

    /// Evicts the oldest page of `list`; list `to` remembers it.
    fn evict(&mut self, list: usize, to: Option<usize>) -> Effect {
        let mut entry = self.lists[list].remove(0);
        let effect = Effect::Evicted { page: entry.page, dirty: entry.dirty };
        if let Some(to) = to {
            (entry.dirty, entry.count) = (false, 0);
            self.lists[to].push(entry);
        }
        effect
    }
}

/// Lists, and the function that serves a request and returns the effects of a miss.
struct Naive<F> {
    lists: Lists,
    /// Receives the page's place, if it is in a list.
    serve: F,
}

impl<F: FnMut(&mut Lists, Option<(usize, usize)>, Request) -> Vec<Effect>> Model for Naive<F> {
    fn access(&mut self, request: Request) -> (bool, Vec<Effect>) {
        let place = self.lists.find(request.page());
        let hit = place.is_some_and(|(list, _)| list < self.lists.cached_lists);
        if let (true, Some((list, at))) = (hit, place) {
            self.lists.lists[list][at].dirty |= request.is_write();
        }
        (hit, (self.serve)(&mut self.lists, place, request))
    }

    fn cleaned(&mut self, page: PageNo) {
        if let Some((list, at)) = self.lists.find(page) {
            self.lists.lists[list][at].dirty = false;
        }
    }

    fn forget(&mut self, page: PageNo) -> bool {
        match self.lists.find(page) {
            Some((list, at)) if list < self.lists.cached_lists => {
                self.lists.lists[list].remove(at);
                true
            }
            _ => false,
        }
    }

    fn pages(&self) -> Vec<(PageNo, bool)> {
        let cached = self.lists.lists[..self.lists.cached_lists].iter().flatten();
        cached.map(|entry| (entry.page, entry.dirty)).collect()
    }
}

type Serve = Box<dyn FnMut(&mut Lists, Option<(usize, usize)>, Request) -> Vec<Effect>>;

fn second_chance(frames: usize) -> Naive<Serve> {
    let serve = |lists: &mut Lists, place: Option<(usize, usize)>, request: Request| {
        if let Some((list, at)) = place {
            lists.lists[list][at].count = 1;
            return Vec::new();
        }
        let mut effects = Vec::new();
        if lists.is_full() {
            while lists.lists[0][0].count == 1 {
                lists.lists[0][0].count = 0;
                lists.move_to((0, 0), 0);
            }
            effects.push(lists.evict(0, None));
        }
        lists.push(0, request);
        effects
    };
    Naive { lists: Lists::new(1, 1, frames), serve: Box::new(serve) }
}

fn slru(frames: usize, protected_max: usize) -> Naive<Serve> {
    const PROBATIONARY: usize = 0;
    const PROTECTED: usize = 1;
    let serve = move |lists: &mut Lists, place: Option<(usize, usize)>, request: Request| {
        if let Some(place) = place {
            lists.move_to(place, PROTECTED);
            while lists.len(PROTECTED) > protected_max {
                lists.move_to((PROTECTED, 0), PROBATIONARY);
            }
            return Vec::new();
        }
        let mut effects = Vec::new();
        if lists.is_full() {
            let has_probationary = lists.len(PROBATIONARY) > 0;
            effects
                .push(lists.evict(if has_probationary { PROBATIONARY } else { PROTECTED }, None));
        }
        lists.push(PROBATIONARY, request);
        effects
    };
    Naive { lists: Lists::new(2, 2, frames), serve: Box::new(serve) }
}

fn two_q(frames: usize, in_max: usize, out_max: usize) -> Naive<Serve> {
    const A1_IN: usize = 0;
    const AM: usize = 1;
    const A1_OUT: usize = 2;
    let serve = move |lists: &mut Lists, place: Option<(usize, usize)>, request: Request| {
        let to = match place {
            Some((A1_IN, _)) => return Vec::new(),
            Some((AM, at)) => {
                lists.move_to((AM, at), AM);
                return Vec::new();
            }
            Some((list, at)) => {
                lists.lists[list].remove(at);
                AM
            }
            None => A1_IN,
        };
        let mut effects = Vec::new();
        if lists.is_full() {
            if lists.len(A1_IN) > in_max || lists.len(AM) == 0 {
                effects.push(lists.evict(A1_IN, Some(A1_OUT)));
                if lists.len(A1_OUT) > out_max {
                    lists.lists[A1_OUT].remove(0);
                }
            } else {
                effects.push(lists.evict(AM, None));
            }
        }
        lists.push(to, request);
        effects
    };
    Naive { lists: Lists::new(3, 2, frames), serve: Box::new(serve) }
}

/// Figure 4 of the paper; if there is room, nothing is replaced.
fn arc(frames: usize) -> Naive<Serve> {
    const T1: usize = 0;
    const T2: usize = 1;
    const B1: usize = 2;
    const B2: usize = 3;
    let c = frames as f64;
    let mut p = 0.0f64;
    fn replace(lists: &mut Lists, p: f64, in_b2: bool) -> Vec<Effect> {
        let t1 = lists.len(T1) as f64;
        if !lists.is_full() {
            Vec::new()
        } else if t1 >= 1.0 && ((in_b2 && t1 == p) || t1 > p) {
            vec![lists.evict(T1, Some(B1))]
        } else {
            vec![lists.evict(T2, Some(B2))]
        }
    }
    let serve = move |lists: &mut Lists, place: Option<(usize, usize)>, request: Request| {
        let (b1, b2) = (lists.len(B1) as f64, lists.len(B2) as f64);
        match place {
            Some((list @ (T1 | T2), at)) => {
                lists.move_to((list, at), T2);
                Vec::new()
            }
            Some((list, _)) => {
                p = if list == B1 {
                    c.min(p + if b1 >= b2 { 1.0 } else { b2 / b1 })
                } else {
                    0f64.max(p - if b2 >= b1 { 1.0 } else { b1 / b2 })
                };
                let effects = replace(lists, p, list == B2);
                let (list, at) = lists.find(request.page()).unwrap();
                lists.lists[list].remove(at);
                lists.push(T2, request);
                effects
            }
            None => {
                let l1 = lists.len(T1) + lists.len(B1);
                let all = l1 + lists.len(T2) + lists.len(B2);
                let effects = if l1 == frames {
                    if lists.len(T1) < frames {
                        lists.lists[B1].remove(0);
                        replace(lists, p, false)
                    } else {
                        vec![lists.evict(T1, None)]
                    }
                } else if all >= frames {
                    if all == 2 * frames {
                        lists.lists[B2].remove(0);
                    }
                    replace(lists, p, false)
                } else {
                    Vec::new()
                };
                lists.push(T1, request);
                effects
            }
        }
    };
    Naive { lists: Lists::new(4, 2, frames), serve: Box::new(serve) }
}

fn s3_fifo(frames: usize, small_max: usize, ghost_max: usize, move_uses: u8) -> Naive<Serve> {
    const SMALL: usize = 0;
    const MAIN: usize = 1;
    const GHOST: usize = 2;
    let serve = move |lists: &mut Lists, place: Option<(usize, usize)>, request: Request| {
        let to = match place {
            Some((list @ (SMALL | MAIN), at)) => {
                let entry = &mut lists.lists[list][at];
                entry.count = (entry.count + 1).min(3);
                return Vec::new();
            }
            Some((list, at)) => {
                lists.lists[list].remove(at);
                MAIN
            }
            None => SMALL,
        };
        let mut effects = Vec::new();
        while lists.is_full() {
            let main_is_long = lists.len(MAIN) > frames - small_max;
            if main_is_long || lists.len(SMALL) == 0 {
                let oldest = &mut lists.lists[MAIN][0];
                if oldest.count > 0 {
                    oldest.count -= 1;
                    lists.move_to((MAIN, 0), MAIN);
                } else {
                    effects.push(lists.evict(MAIN, None));
                }
                continue;
            }
            while lists.len(SMALL) > 0 && lists.is_full() {
                if lists.lists[SMALL][0].count >= move_uses {
                    lists.lists[SMALL][0].count = 0;
                    lists.move_to((SMALL, 0), MAIN);
                } else {
                    effects.push(lists.evict(SMALL, Some(GHOST)));
                }
            }
            if lists.len(GHOST) > ghost_max {
                lists.lists[GHOST].remove(0);
            }
        }
        lists.push(to, request);
        effects
    };
    Naive { lists: Lists::new(3, 2, frames), serve: Box::new(serve) }
}

fn w_tinylfu(frames: usize, window_max: usize, sample: u32) -> Naive<Serve> {
    const WINDOW: usize = 0;
    const PROBATION: usize = 1;
    const PROTECTED: usize = 2;
    let protected_max = (frames - window_max) * 4 / 5;
    let mut sketch = FrequencySketch::new(frames as u32, sample);
    let serve = move |lists: &mut Lists, place: Option<(usize, usize)>, request: Request| {
        sketch.increment(request.page());
        if let Some((list, at)) = place {
            let to = if list == PROBATION && protected_max > 0 { PROTECTED } else { list };
            lists.move_to((list, at), to);
            if lists.len(PROTECTED) > protected_max {
                lists.move_to((PROTECTED, 0), PROBATION);
            }
            return Vec::new();
        }
        let mut effects = Vec::new();
        if lists.len(WINDOW) == window_max {
            let candidate = lists.lists[WINDOW][0].page;
            let main = if lists.len(PROBATION) > 0 { PROBATION } else { PROTECTED };
            let victim = lists.lists[main].first().map(|entry| entry.page);
            let wins = |victim| sketch.estimate(candidate) > sketch.estimate(victim);
            if !lists.is_full() {
                lists.move_to((WINDOW, 0), PROBATION);
            } else if victim.is_some_and(wins) {
                effects.push(lists.evict(main, None));
                lists.move_to((WINDOW, 0), PROBATION);
            } else {
                effects.push(lists.evict(WINDOW, None));
            }
        }
        lists.push(WINDOW, request);
        effects
    };
    Naive { lists: Lists::new(3, 3, frames), serve: Box::new(serve) }
}

proptest! {
    #[test]
    fn second_chance_decides_as_its_naive_form_and_as_clock(
        frames in 1u32..12,
        steps in steps(24),
    ) {
        agree("second_chance", frames, 24, &mut second_chance(frames as usize), &steps);
        agree("clock", frames, 24, &mut second_chance(frames as usize), &steps);
    }

    #[test]
    fn slru_decides_as_its_naive_form(
        frames in 1u32..12,
        protected in prop::sample::select(vec![0.0, 0.5, 0.8, 1.0]),
        steps in steps(24),
    ) {
        let protected_max = (f64::from(frames) * protected) as usize;
        let mut naive = slru(frames as usize, protected_max);
        agree(&format!("slru:protected={protected}"), frames, 24, &mut naive, &steps);
        if protected == 0.8 {
            agree("slru", frames, 24, &mut slru(frames as usize, protected_max), &steps);
        }
    }

    #[test]
    fn two_q_decides_as_its_naive_form(frames in 1u32..12, steps in steps(24)) {
        let share = |of: f64| (f64::from(frames) * of) as usize;
        let mut naive = two_q(frames as usize, share(0.25), share(0.5));
        agree("2q", frames, 24, &mut naive, &steps);
        agree("2q:out=0", frames, 24, &mut two_q(frames as usize, share(0.25), 0), &steps);
        let mut naive = two_q(frames as usize, share(0.5), share(2.0));
        agree("2q:in=0.5,out=2", frames, 24, &mut naive, &steps);
    }

    #[test]
    fn arc_decides_as_its_naive_form(frames in 1u32..12, steps in steps(36)) {
        agree("arc", frames, 36, &mut arc(frames as usize), &steps);
    }

    #[test]
    fn s3_fifo_decides_as_its_naive_form(frames in 1u32..14, steps in steps(36)) {
        let share = |of: f64| (f64::from(frames) * of) as usize;
        let mut naive = s3_fifo(frames as usize, share(0.1), share(0.9), 2);
        agree("s3_fifo", frames, 36, &mut naive, &steps);
        let mut naive = s3_fifo(frames as usize, share(0.5), 0, 1);
        agree("s3_fifo:small=0.5,ghost=0,move=1", frames, 36, &mut naive, &steps);
    }

    #[test]
    fn w_tinylfu_decides_as_its_naive_form(frames in 1u32..14, steps in steps(36)) {
        agree("w_tinylfu", frames, 36, &mut w_tinylfu(frames as usize, 1, 10), &steps);
        let window = ((f64::from(frames) * 0.4) as usize).max(1);
        let mut naive = w_tinylfu(frames as usize, window, 2);
        agree("w_tinylfu:window=0.4,sample=2", frames, 36, &mut naive, &steps);
        let mut naive = w_tinylfu(frames as usize, frames as usize, 10);
        agree("w_tinylfu:window=1", frames, 36, &mut naive, &steps);
    }

    #[test]
    fn dirty_pages_go_in_the_order_of_the_write_candidates(
        text in prop::sample::select(vec![
            "lru", "fifo", "clock", "clock:bits=2", "second_chance", "slru", "slru:protected=1",
            "2q", "2q:in=0.5", "arc", "lirs", "lirs:hir=0.5",
            "lirs_wsr", "lirs_wsr:hir=0.5", "lru_k", "lru_k:k=3,history=0",
        ]),
        frames in 1u32..12,
        steps in steps(24),
    ) {
        evicts_its_candidates(text, frames, &steps, false);
    }
}
